-- What   Grant as grant.lua does, to one that waits. Unless all that it wants is reserved for it, it
--        has a place in the queue of each of its resources, and those that are free are handed over.
--        A lease of its process that it follows is given back first, in front of its release.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   ttlMs, then per request: lock value (owner|label), since when it waits by the client's
--        clock, for how many ms it has waited, its ticket, for how many ms to reserve for it, what it
--        follows (owner|; empty: nothing)
-- Reply  as each-request.lua says, per request granted: the token | held: { index of the first
--        resource that has another owner, its lock value, its PTTL, its place in that queue: 1 is
--        the first, 0 if it has none }
-- Note   Tickets are served by the time at which the wait began. A client whose clock is about
--        right gives the same time to every node, so all nodes serve the same ticket first. For
--        any other the node reckons from its own clock. Who is far asks late by its way to here,
--        which is shorter than what is reserved for it.
--@include start
local RIGHT_MS = 50
-- Also in protocol/verbs.ts.
local TICKET_MS = '90000'
local MOST_TICKETS = 4096

--@include grant-request
--@include queue
--@include each-request

local now = nowMs()

local function takePlace(first, last, at)
  local since, waitedMs, ticket, reserveMs = ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4]
  local asked, name, locks = since + waitedMs, ticketName(ticket), {}
  if math.max(asked - now, now - asked) > math.max(RIGHT_MS, tonumber(reserveMs)) then
    since = format('%.0f', now - waitedMs)
  end
  for key = first, last, 2 do
    local queue = queueOf(KEYS[key])
    locks[#locks + 1] = KEYS[key]
    if call('ZCARD', queue) < MOST_TICKETS then
      call('ZADD', queue, since, ticket)
    end
    call('PEXPIRE', queue, TICKET_MS)
  end
  call('HSET', name, 'asked', format('%.0f', asked), 'reserve', reserveMs)
  if #locks > 1 then
    call('HSET', name, 'locks', cjson.encode(locks))
  end
  call('PEXPIRE', name, TICKET_MS)
end

local function request(first, last, at)
  local ticket, followed, isReserved, follows = ARGV[at + 3], ARGV[at + 5], true, false
  local mine = '~' .. ticket .. '|'
  for key = first, last, 2 do
    local value = call('GET', KEYS[key]) or ''
    isReserved = isReserved and sub(value, 1, #mine) == mine
    if followed ~= '' and sub(value, 1, #followed) == followed then
      follows = call('DEL', KEYS[key]) > 0
    end
  end
  if not isReserved then
    takePlace(first, last, at)
    for key = first, last, 2 do
      if not call('GET', KEYS[key]) then
        handOver(KEYS[key], ticket, not follows)
      end
    end
  end
  local reply = grantAll(first, last, at, mine)
  if type(reply) == 'number' then
    for key = first, last, 2 do
      call('ZREM', queueOf(KEYS[key]), ticket)
    end
    call('DEL', ticketName(ticket))
  else
    reply[4] = (call('ZRANK', queueOf(KEYS[first + 2 * (reply[1] - 1)]), ticket) or -1) + 1
  end
  return reply
end

local replies = eachRequest(admitted, 2, 1, 6, request)
storeFloor()
return replies
