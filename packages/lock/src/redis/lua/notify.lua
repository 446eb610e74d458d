-- What   Tell who waits for a lock that it is free. Everybody who waits listens to the lock's own channel, where nothing is ever said, so that they can be counted,
--        and sits in one of 16 seats with a channel each. Only the first two occupied seats from the turn on are told: all at once would only disturb each other.
--        The turn is the same on all nodes, so all nodes tell the same seats; it rises with the tokens, so it goes round. Turn 0 tells nobody.
-- KEYS   none of its own: the lock key it is called with
-- ARGV   none of its own: the turn it is called with
-- Reply  how many wait; each seat that is told hears "<rank: 0 or 1> <how many sit there>"
local WAKE_SLOTS = 16
local function tell(lock, turn)
  local waiting = call('PUBSUB', 'NUMSUB', lock)[2]
  if turn == 0 or (waiting == 0 and RUN) then
    return waiting
  end
  -- A node that is itself a cluster (and then asked without RUN) counts only those who listen at this very server; there all seats are told. Redis says
  -- redis_mode, Valkey server_mode.
  local isCounted = RUN or not string.find(call('INFO', 'server'), '_mode:cluster', 1, true)
  if waiting == 0 and isCounted then
    return waiting
  end
  -- No namespace has a brace, so the first one closes the tag.
  local tag = string.find(lock, '}', 1, true) + 1
  local seats = {}
  for index = 1, WAKE_SLOTS do
    local seat = (turn + index - 1) % WAKE_SLOTS
    seats[index] = string.sub(lock, 1, tag) .. 'seat:' .. format('%.0f', seat) .. ':' .. string.sub(lock, tag + #'lock:' + 1)
  end
  local counts = call('PUBSUB', 'NUMSUB', unpack(seats))
  local told = 0
  for index = 1, WAKE_SLOTS do
    local sitting = counts[2 * index]
    if not isCounted then
      call('PUBLISH', seats[index], '0 ' .. format('%.0f', math.max(1, sitting)))
    elseif sitting > 0 and told < 2 then
      call('PUBLISH', seats[index], format('%.0f %.0f', told, sitting))
      told = told + 1
    end
  end
  return waiting
end
