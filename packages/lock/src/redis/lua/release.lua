-- What   Delete the keys that have this owner, and hand over what is free then, to those that wait.
--        Counters stay. Works on a quarantined node too, and does not ask whether it is one: deleting
--        an owner's own key is always safe.
-- KEYS   per resource: lock
-- ARGV   per request: what is given back (one of the two below)
-- Reply  as each-request.lua says, with the word - for the field; per request 0 if nothing had this
--        owner, else 1 + how many wait, the highest number over the resources
-- Note   A request has one of two forms:
--          <owner>|<1 or 0><ticket>  A lock of this owner; 0 hands nothing over. The ticket is the one
--                                    that won the lock, if one did: where the lock has another owner
--                                    it goes, and what is reserved for it to the next.
--          ~<ticket>|1               A ticket, and what is reserved for it: its caller waits no more.
--        A lock that was free already is handed over all the same.
--        Of a single request for a single resource that is not ours or that nobody waits for, the
--        whole reply is the number. Nearly every call is of that kind, so nothing is defined before
--        it: the server pays for every definition. In the code: 23 and 24 are an owner of 22
--        characters, the bar, and 1 or 0 without a ticket; the bytes 124, 126 and 48 are |, ~ and 0.
--@include start
if #KEYS == 1 and #ARGV == 1 and #ARGV[1] == 24 and string.byte(ARGV[1], 23) == 124 then
  local value = call('GET', KEYS[1])
  if value and sub(value, 1, 23) ~= sub(ARGV[1], 1, 23) then
    return 0
  end
  -- As queueOf has it.
  if call('EXISTS', (string.gsub(KEYS[1], '}:lock:', '}:queue:', 1))) == 0 then
    return call('DEL', KEYS[1])
  end
end

--@include queue
--@include each-request

local function request(first, last, at)
  local reply, free, text = 0, {}, ARGV[at]
  local length = string.find(text, '|', 1, true)
  local mine, ticket = sub(text, 1, length), sub(text, length + 2)
  if string.byte(text) == 126 then
    ticket = sub(mine, 2, -2)
  end
  if ticket ~= '' then
    call('DEL', ticketName(ticket))
  end
  for key = first, last do
    local value = call('GET', KEYS[key])
    if ticket ~= '' then
      call('ZREM', queueOf(KEYS[key]), ticket)
    end
    if value and (sub(value, 1, length) == mine or (ticket ~= '' and sub(value, 1, #ticket + 2) == '~' .. ticket .. '|')) then
      reply, value = call('DEL', KEYS[key]), nil
    end
    if not value and string.byte(text, length + 1) ~= 48 then
      free[#free + 1] = KEYS[key]
    end
  end
  local waiting = 0
  for index = 1, #free do
    -- One that wants several may have been given it with the one before.
    if index == 1 or not call('GET', free[index]) then
      waiting = math.max(waiting, handOver(free[index]))
    end
  end
  return reply > 0 and reply + waiting or 0
end

-- Requests for one resource whose release notifies nobody: read at once, deleted at once. Without
-- the right to MGET each is read by itself. What was read still holds at the end: a request that is not quick
-- could change it only for a lock that two requests of one call name, and an owner gives back a lock once.
local values, freed, queues = redis.pcall('MGET', unpack(KEYS)), {}, {}
for index = 1, #KEYS do
  queues[index] = queueOf(KEYS[index])
end
local someWait = call('EXISTS', unpack(queues)) > 0

local function quick(key, last, at)
  local value, text = values[key], ARGV[at]
  local length = string.find(text, '|', 1, true)
  if last > key or values.err or string.byte(text) == 126 or #text > length + 1 then
    return nil
  end
  if value and sub(value, 1, length) ~= sub(text, 1, length) then
    return 0
  end
  if not value or (someWait and call('EXISTS', queues[key]) > 0) then
    return nil
  end
  freed[#freed + 1] = KEYS[key]
  return 1
end

local replies = eachRequest('-', 1, 0, 1, request, quick)
if #freed > 0 then
  call('DEL', unpack(freed))
end
return replies
