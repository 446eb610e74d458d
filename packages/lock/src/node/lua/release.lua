-- What   Delete what is ours and tell who waits for it, with their number, so that they need not all come at once. Counters stay. Works on a quarantined node
--        too: deleting our own key can hurt nobody.
-- KEYS   per resource: lock (its name is also the channel), token
-- ARGV   owner
-- Reply  0 if nothing was ours, else 1 + the highest number of subscribers that were told
local function release(first, last, at)
  local mine, reply = ARGV[at] .. '|', 0
  for key = first, last, 2 do
    local value = call('GET', KEYS[key])
    if value and startsWith(value, mine) then
      call('DEL', KEYS[key])
      reply = math.max(reply, 1 + tell(KEYS[key]))
    end
  end
  return reply
end
