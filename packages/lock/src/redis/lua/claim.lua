-- What   Grant as grant.lua does, to a process that waits: it may take what is reserved for it.
--        Where it is refused it gets a ticket in the queue of that resource, or keeps its own.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   ttlMs, ticket, then per request: lock value (owner|label and a line feed), since when it
--        waits by the client's clock, for how many ms it has waited
-- Reply  as each-request.lua says, per request granted: the token | held: { index of the first
--        resource that has another owner, its lock value, its PTTL, 1 if there is a ticket in its
--        queue or else 0 }
-- Note   Tickets are served by the time at which the wait began. A client whose clock is about
--        right gives the same time to every node, so all nodes serve the same ticket first. For
--        any other the node reckons from its own clock.
--@include start
local RIGHT_MS = 50
-- Also in protocol/verbs.ts.
local TICKET_MS = 90000
local MOST_TICKETS = 1024
local FULL, FULL_MS = '9999', 1000
local ticket = ARGV[2] or ''
local mine = '~' .. ticket .. '|'

--@include grant-request
--@include queue
--@include each-request

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Is there room for one more ticket? The queue is not read for each: how many it has at most is
-- counted in a key of its own, which says FULL for a second after it was found full.
local function hasRoom(lock, queue)
  local atMost = named(lock, 'tickets:', resourceOf(lock))
  local most = call('INCR', atMost)
  if most ~= 1 and most ~= MOST_TICKETS + 1 then
    return most <= MOST_TICKETS
  end
  local tickets, count = call('HGETALL', queue), 0
  for index = 1, #tickets, 2 do
    local askedAt = tonumber(sub(tickets[index + 1], 16, 30))
    -- Its process has not asked for long: it is gone.
    if math.max(now - askedAt, askedAt - now) > TICKET_MS then
      call('HDEL', queue, tickets[index])
    else
      count = count + 1
    end
  end
  if count < MOST_TICKETS then
    call('SET', atMost, format('%.0f', count + 1), 'PX', format('%.0f', TICKET_MS))
    return true
  end
  call('SET', atMost, FULL, 'PX', format('%.0f', FULL_MS))
  return false
end

local function takeTicket(lock, at)
  local queue, since = queueOf(lock), tonumber(ARGV[at + 1])
  local reckoned = now - tonumber(ARGV[at + 2])
  if math.max(since - reckoned, reckoned - since) > RIGHT_MS then
    since = reckoned
  end
  if not call('HGET', queue, ticket) and not hasRoom(lock, queue) then
    return 0
  end
  local asked = tonumber(ARGV[at + 1]) + tonumber(ARGV[at + 2])
  call('HSET', queue, ticket, format('%015.0f%015.0f%015.0f', since, now, asked))
  call('PEXPIRE', queue, format('%.0f', TICKET_MS))
  return 1
end

local function request(first, last, at)
  local reply = grantAll(first, last, at, mine)
  if type(reply) == 'number' then
    for key = first, last, 2 do
      call('HDEL', queueOf(KEYS[key]), ticket)
    end
    return reply
  end
  -- What is reserved for it is of no use to it without the rest.
  for key = first, last, 2 do
    local holder = call('GET', KEYS[key])
    if holder and sub(holder, 1, #mine) == mine then
      call('DEL', KEYS[key])
      passOn(KEYS[key])
    end
  end
  reply[4] = takeTicket(KEYS[first + 2 * (reply[1] - 1)], at)
  return reply
end

local replies = eachRequest(admitted, 2, 2, 3, request)
storeFloor()
return replies
