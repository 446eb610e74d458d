-- What   Delete what is ours and tell who waits for it. Counters stay. Works on a quarantined node too, and does not ask whether it is one: deleting our own key can
--        hurt nobody.
-- KEYS   per resource: lock
-- ARGV   1 the number of resources of each request, then per request: beginning of our lock value (owner|), turn (see tell)
-- Reply  { nil, per request 0 if nothing was ours, else 1 + how many wait, the highest number over the resources }
local call, format, KEYS, ARGV, epoch = redis.call, string.format, KEYS, ARGV, false
--@include tell

local function request(first, last, at)
  local mine, reply = ARGV[at], 0
  for key = first, last do
    local value = call('GET', KEYS[key])
    if value and string.sub(value, 1, #mine) == mine then
      call('DEL', KEYS[key])
      reply = math.max(reply, 1 + tell(KEYS[key], tonumber(ARGV[at + 1])))
    end
  end
  return reply
end

local FIRST_KEY, KEYS_EACH, FIELDS = 1, 1, 2
--@include each
return replies
