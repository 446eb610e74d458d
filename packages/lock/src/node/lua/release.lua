-- What   Delete what is ours and tell who waits for it. Counters stay. Works on a quarantined node too, and does not ask whether it is one: deleting our own key can
--        hurt nobody.
-- KEYS   per resource: lock
-- ARGV   per request: beginning of our lock value and the turn (owner|turn; see tell.lua)
-- Reply  as each.lua says, with the word - for the field; per request 0 if nothing was ours, else 1 + how many wait, the highest number over the resources
-- Note   Of a single request for a single resource that is not ours, or that nobody waits for, the whole reply is the number. Nearly every call is of that kind, so
--        nothing is defined before it: the server pays for every definition. 23 and 124: an owner of 22 characters, and the bar.
--@include start

if RUN and #KEYS == 1 and #ARGV == 1 and string.byte(ARGV[1], 23) == 124 then
  local value = call('GET', KEYS[1])
  if not value or sub(value, 1, 23) ~= sub(ARGV[1], 1, 23) then
    return 0
  end
  if call('PUBSUB', 'NUMSUB', KEYS[1])[2] == 0 then
    call('DEL', KEYS[1])
    return 1
  end
end

--@include tell

local function request(first, last, at)
  local reply, text = 0, ARGV[at]
  local length = string.find(text, '|', 1, true)
  local mine = sub(text, 1, length)
  for key = first, last do
    local value = call('GET', KEYS[key])
    if value and sub(value, 1, length) == mine then
      call('DEL', KEYS[key])
      reply = math.max(reply, 1 + tell(KEYS[key], tonumber(sub(text, length + 1))))
    end
  end
  return reply
end

local FIRST_KEY, SHARED, FIELDS, admitted = 1, 0, 1, '-'
--@include each
return replies
