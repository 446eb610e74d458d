-- What   Notify waiters that a lock is free. Every waiter listens to the lock's own channel, on
--        which nothing is published, so that all can be counted, and to the channel of one of 16
--        wake slots. Only the first two occupied slots from `from` on are notified: all at once
--        would only disturb each other. `from` is the same on all nodes, so all notify the same
--        slots; it rises with the tokens, so every slot comes first at some time. 0 notifies
--        nobody.
-- KEYS   none of its own: the lock key it is called with
-- ARGV   none of its own: the `from` it is called with
-- Reply  how many wait; each slot that is notified hears "<rank: 0 or 1> <how many are in the
--        slot>"
-- Note   The channel of a wake slot is named seat:<slot>.
local WAKE_SLOTS = 16
local function notify(lock, from)
  local waiting = call('PUBSUB', 'NUMSUB', lock)[2]
  if from == 0 or (waiting == 0 and RUN) then
    return waiting
  end
  -- A node that is itself a cluster (and then asked without RUN) counts only the listeners of this
  -- very server; there all slots are notified. Redis says redis_mode, Valkey server_mode.
  local isCounted = RUN or not string.find(call('INFO', 'server'), '_mode:cluster', 1, true)
  if waiting == 0 and isCounted then
    return waiting
  end
  -- No namespace has a brace, so the first one closes the tag.
  local tag = string.find(lock, '}', 1, true) + 1
  local slots = {}
  for index = 1, WAKE_SLOTS do
    local slot = (from + index - 1) % WAKE_SLOTS
    slots[index] = string.sub(lock, 1, tag) .. 'seat:' .. format('%.0f', slot) .. ':' .. string.sub(lock, tag + #'lock:' + 1)
  end
  local counts = call('PUBSUB', 'NUMSUB', unpack(slots))
  local notified = 0
  for index = 1, WAKE_SLOTS do
    local inSlot = counts[2 * index]
    if not isCounted then
      call('PUBLISH', slots[index], '0 ' .. format('%.0f', math.max(1, inSlot)))
    elseif inSlot > 0 and notified < 2 then
      call('PUBLISH', slots[index], format('%.0f %.0f', notified, inSlot))
      notified = notified + 1
    end
  end
  return waiting
end
