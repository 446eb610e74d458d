-- What   The lock value of a resource, its time to live, and the highest token that may have been
--        stored for it. Changes nothing.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   per request: a ticket ('' for none)
-- Reply  as each-request.lua says, per request { lock value or '', PTTL, token, how many wait }, or
--        with a ticket { lock value or '', PTTL, 0, 1 if it waits or has the lock reserved, else 0 }
--@include counter
--@include queue
--@include each-request

local function request(first, _, at)
  local value, ticket = call('GET', KEYS[first]) or '', ARGV[at]
  local ttl, mine = call('PTTL', KEYS[first]), '~' .. ticket .. '|'
  if ticket == '' then
    return { value, ttl, storedAt(KEYS[first + 1]), call('ZCARD', queueOf(KEYS[first])) }
  end
  local waits = sub(value, 1, #mine) == mine or call('ZSCORE', queueOf(KEYS[first]), ticket)
  return { value, ttl, 0, waits and 1 or 0 }
end

return eachRequest(admitted, 2, 0, 1, request)
