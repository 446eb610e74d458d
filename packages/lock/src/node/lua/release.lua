-- What   Delete what is ours and tell who waits for it. Counters stay. Works on a quarantined node too: deleting our own key can hurt nobody.
-- KEYS   per resource: lock, token
-- ARGV   beginning of our lock value (owner|), turn (see tell)
-- Reply  0 if nothing was ours, else 1 + how many wait, the highest number over the resources
local function release(first, last, at)
  local mine, reply = ARGV[at], 0
  for key = first, last, 2 do
    local value = call('GET', KEYS[key])
    if value and startsWith(value, mine) then
      call('DEL', KEYS[key])
      reply = math.max(reply, 1 + tell(KEYS[key], tonumber(ARGV[at + 1])))
    end
  end
  return reply
end
