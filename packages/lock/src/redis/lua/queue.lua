-- What   The queue of those that wait for a resource, and its one rule: a free lock with a queue
--        belongs to the first in it, but for a first try that finds it free (grant.lua). Whoever
--        makes this node notice that a lock is free hands it over: it is reserved for a moment for the first, as a lock of its name, which anyone else
--        is refused for. The first is told; the next and the last are told as well, and look when
--        the reservation is over: they find out if the first stands still. If it does, those that
--        come next are asked whether they run.
-- KEYS   1 any key of the namespace
-- ARGV   none of its own
-- Reply  none of its own; an inbox hears "<for how many ms it is reserved for another; 0: for you>
--        <when you asked last, by your clock><word of the ticket>"
-- Note   {ns}:queue:<resource> is a sorted set: tickets, since when they wait. A ticket is named
--        <inbox>:<word>; the word of a set of resources begins with &. {ns}:ticket:<ticket> is a hash:
--          asked    when it asked last: a waiter heeds only what is told of its last question
--          reserve  for how many ms to reserve for it
--          locks    of a set: the keys of its locks, as JSON
--          again    of a set: when a part of it may be kept again, after one that was kept in vain
--        A ticket is spent when all of it is reserved; its next claim puts it back in its place. A set
--        is served when all of it is free. Where it is the first in all of its queues, what is free of
--        it is kept until the rest is, so nobody that it waits for waits for it: for a quarter of
--        the time that it has waited, after which others have it for three times as long.
--        A reservation names the owner ~<ticket>.
--@include start
-- No namespace has a brace, so the first one closes the tag.
local NAMESPACE = sub(KEYS[1], 1, string.find(KEYS[1], '}', 1, true) + 1)
-- A set that waits costs each hand-over in front of it so many reads: those behind are skipped.
local MOST_SETS = 16
-- Also in protocol/verbs.ts.
local LONGEST_PART_MS = 1000

local function queueOf(lock)
  return NAMESPACE .. 'queue:' .. sub(lock, #NAMESPACE + 6)
end

local function ticketName(ticket)
  return NAMESPACE .. 'ticket:' .. ticket
end

local function ticketAt(lock, place)
  return call('ZRANGE', queueOf(lock), place, place)[1]
end

-- Also in admission.lua, of which a script that hands over has no use.
local function nowMs()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- False if its process is gone.
local function tell(ticket, reservedMs)
  local asked, inbox = call('HGET', ticketName(ticket), 'asked'), string.match(ticket, '^[^:]*')
  if not asked then
    return false
  end
  return call('PUBLISH', NAMESPACE .. 'inbox:' .. inbox, format('%.0f', reservedMs) .. ' ' .. asked .. sub(ticket, #inbox + 1)) > 0
end

-- It asks at once, or its ticket is over when a reservation for it would be.
local function rouse(ticket)
  local reserveMs = call('HGET', ticketName(ticket), 'reserve')
  return tell(ticket, 0) and call('PEXPIRE', ticketName(ticket), reserveMs)
end

-- What is to be reserved for a ticket now that this lock is free, for how long, and whether that is
-- all it waits for; nil: nothing yet.
local function dueTo(ticket, lock)
  local name = ticketName(ticket)
  local known = call('HMGET', name, 'reserve', 'locks', 'again')
  local reserveMs = tonumber(known[1] or '1')
  if not known[2] then
    return { lock }, reserveMs, true
  end
  local mine, locks, part, isFirst, keptMs = '~' .. ticket .. '|', cjson.decode(known[2]), {}, true, 0
  for index = 1, #locks do
    local value = call('GET', locks[index])
    if not value or sub(value, 1, #mine) == mine then
      part[#part + 1] = locks[index]
      keptMs = math.max(keptMs, call('PTTL', locks[index]))
    end
    isFirst = isFirst and ticketAt(locks[index], '0') == ticket
  end
  if #part == #locks then
    call('HDEL', name, 'again')
    return part, reserveMs, true
  elseif not isFirst then
    return nil
  elseif keptMs == 0 then
    local now = nowMs()
    if now < tonumber(known[3] or '0') then
      return nil
    end
    local waitedMs = now - call('ZSCORE', queueOf(lock), ticket)
    -- Also in keepAgainMs (waiting/wake-up.ts), by which the client comes back at `again`.
    keptMs = math.max(4 * reserveMs, math.min(LONGEST_PART_MS, math.floor(waitedMs / 4)))
    call('HSET', name, 'again', format('%.0f', now + 4 * keptMs))
  end
  return part, keptMs, false
end

-- Hands over a lock that is free. `asking` is told by the reply of its claim if it is the first. Where
-- nobody came for it (a claim found it free) the next is roused, and two more for each that is gone, so
-- that many that stand still are found out in a few reservations. Returns how many wait.
local function handOver(lock, asking, isLeft)
  local queue, place, sets, more, reservedMs = queueOf(lock), 0, 0, 0, nil
  local count = call('ZCARD', queue)
  for _ = 1, count do
    local ticket = ticketAt(lock, format('%.0f', place))
    local isSet = string.find(ticket, ':&', 1, true)
    if reservedMs then
      if (isLeft and (ticket == asking or rouse(ticket))) or tell(ticket, reservedMs) then
        local last = ticketAt(lock, '-1')
        if not isLeft or more == 0 or ticket == last then
          if isLeft or ticket ~= last then
            tell(last, reservedMs)
          end
          return count
        end
        place, more = place + 1, more - 1
      else
        call('ZREM', queue, ticket)
      end
    elseif isSet and sets == MOST_SETS then
      place = place + 1
    else
      local due, forMs, isAll = dueTo(ticket, lock)
      if not due then
        place, sets = place + 1, sets + 1
      elseif ticket ~= asking and not tell(ticket, isAll and 0 or forMs) then
        call('ZREM', queue, ticket)
        more = more + 2
      else
        for index = 1, #due do
          call('SET', due[index], '~' .. ticket .. '|the next in line', 'PX', format('%.0f', forMs))
          if isAll then
            call('ZREM', queueOf(due[index]), ticket)
          end
        end
        place, reservedMs = isAll and place or place + 1, forMs
      end
    end
  end
  return count
end
