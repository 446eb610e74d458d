-- What   Who holds a resource, for how long, and the highest token that may have been stored for it. Changes nothing.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   1 the number of resources of each request: 1, then per request: a word that is not read
-- Reply  { epoch, per request { lock value or '', PTTL, token } }
--@include record
--@include counter

local function request(first)
  local value = call('GET', KEYS[first])
  return { value or '', call('PTTL', KEYS[first]), storedAt(KEYS[first + 1]) }
end

local FIRST_KEY, KEYS_EACH, FIELDS = 2, 2, 1
--@include each
return replies
