-- What   The lock value of a resource, its time to live, and the highest token that may have been
--        stored for it. Changes nothing.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   per request: a word that is not read
-- Reply  as each-request.lua says, per request { lock value or '', PTTL, token }
--@include counter
--@include each-request

local function request(first)
  local value = call('GET', KEYS[first])
  return { value or '', call('PTTL', KEYS[first]), storedAt(KEYS[first + 1]) }
end

return eachRequest(admitted, 2, 0, 1, request)
