-- What   The queue of the processes that wait for a resource: one ticket each, first come, first
--        told. When the lock becomes free it is reserved for a moment for the process that is told,
--        as a lock of its inbox, which anyone else is refused for; the next one is told that it may
--        have to step in.
-- KEYS   none of its own: the lock key it is called with
-- ARGV   none of its own
-- Reply  none of its own; an inbox hears "<rank: 0, or 1 for the next one> <resource>"
-- Note   The queue is a hash of inboxes, so that no right is needed that the lock did not need
--        before: since when it waits and when it last asked, 15 digits of milliseconds each. A
--        process that does not listen is passed over. A reservation names the owner ~<inbox>.
local RESERVED_MS = 40

-- No namespace has a brace, so the first one closes the tag.
local function named(lock, kind, rest)
  return sub(lock, 1, string.find(lock, '}', 1, true) + 1) .. kind .. rest
end

local function resourceOf(lock)
  return sub(lock, string.find(lock, '}', 1, true) + 7)
end

local function queueOf(lock)
  return named(lock, 'queue:', resourceOf(lock))
end

-- The place in the list of the ticket that comes first; one that was taken out is ''.
local function firstOf(tickets)
  local best, place = nil, nil
  for index = 1, #tickets, 2 do
    if tickets[index] ~= '' then
      local rank = sub(tickets[index + 1], 1, 15) .. tickets[index]
      if not best or rank < best then
        best, place = rank, index
      end
    end
  end
  return place
end

-- How many wait. The lock must be free.
local function notify(lock)
  local queue, isReserved = queueOf(lock), false
  local tickets = call('HGETALL', queue)
  local waiting = #tickets / 2
  for _ = 1, waiting do
    local place = not isReserved and firstOf(tickets)
    if place then
      local inbox = tickets[place]
      tickets[place] = ''
      call('HDEL', queue, inbox)
      -- A node that is itself a cluster (and then asked without RUN) counts only the listeners of
      -- this very server. Redis says redis_mode, Valkey server_mode.
      if call('PUBLISH', named(lock, 'inbox:', inbox), '0 ' .. resourceOf(lock)) > 0
        or (not RUN and string.find(call('INFO', 'server'), '_mode:cluster', 1, true)) then
        isReserved = true
        call('SET', lock, '~' .. inbox .. '|the next in line\n', 'PX', format('%.0f', RESERVED_MS))
      end
    end
  end
  local backup = isReserved and firstOf(tickets)
  if backup then
    call('PUBLISH', named(lock, 'inbox:', tickets[backup]), '1 ' .. resourceOf(lock))
  end
  return waiting
end
