-- What   The queue of the processes that wait for a resource: one ticket each, first come, first
--        told. When the lock becomes free it is reserved for a moment for the ticket that is told,
--        as a lock of its name, which anyone else is refused for; the next one is told that it may
--        have to step in. Callers of one process that want other sets of resources have tickets of
--        their own: <inbox>:<word of the set>, or the inbox alone for a single resource.
-- KEYS   none of its own: the lock key it is called with
-- ARGV   none of its own
-- Reply  none of its own; an inbox hears "<rank: 0, or 1 for the next one><when it last asked, by
--        its clock><ticket behind the inbox> <resource>"
-- Note   The queue is a hash of tickets: since when it waits, when it last asked, and the same by the
--        client's clock, 15 digits of milliseconds each. A process that does not listen is passed
--        over. A reservation names the owner ~<ticket>.
--        A waiter heeds only what is told of its last question: when it asked is told by its own
--        clock, unchanged, and no two of its questions have one time. What other nodes still tell
--        of an earlier question is thereby known to be stale (wake-up.ts).
--@include start
-- Also in protocol/verbs.ts.
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

-- How many hear it.
local function tell(lock, ticket, rank)
  local inbox, asked = string.match(ticket, '^[^:]*'), sub(call('HGET', queueOf(lock), ticket), 31)
  return call('PUBLISH', named(lock, 'inbox:', inbox), rank .. asked .. sub(ticket, #inbox + 1) .. ' ' .. resourceOf(lock))
end

local function rankOf(tickets, index)
  return sub(tickets[index + 1], 1, 15) .. tickets[index]
end

-- The first two. Mostly both listen, so the others are only compared with them, by their times.
local function firstTwo(tickets)
  local first, second, bound = nil, nil, tickets[2]
  for index = 1, #tickets, 2 do
    if not second or tickets[index + 1] <= bound then
      local rank = rankOf(tickets, index)
      if not first or rank < first then
        first, second = rank, first
      elseif not second or rank < second then
        second = rank
      end
      bound = sub(second or first, 1, 15) .. '999999999999999'
    end
  end
  return { first, second }
end

-- Sorted once: in front of the first that is alive there may be a thousand that died, and the
-- server does nothing else meanwhile.
local function inOrder(tickets)
  local ranks = {}
  for index = 1, #tickets, 2 do
    ranks[#ranks + 1] = rankOf(tickets, index)
  end
  table.sort(ranks)
  return ranks
end

-- Reserves a free lock for the first in the queue that listens, and tells that one and the next.
-- Returns how many wait.
local function passOn(lock)
  local queue, isReserved = queueOf(lock), false
  local tickets = call('HGETALL', queue)
  local ranks, count = firstTwo(tickets), #tickets / 2
  for place = 1, count do
    if place == 3 then
      ranks = inOrder(tickets)
    end
    local ticket = sub(ranks[place], 16)
    if isReserved then
      if tell(lock, ticket, 1) > 0 then
        return count
      end
    else
      isReserved = tell(lock, ticket, 0) > 0
      call('HDEL', queue, ticket)
      if isReserved then
        call('SET', lock, '~' .. ticket .. '|the next in line\n', 'PX', format('%.0f', RESERVED_MS))
      end
    end
  end
  return count
end
