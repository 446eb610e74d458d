-- What   Who holds one resource, for how long, and the highest token that may have been stored for it. Changes nothing.
-- KEYS   lock, token
-- ARGV   none
-- Reply  { lock value or '', PTTL, token }
local function inspect(first)
  local value = call('GET', KEYS[first])
  return { value or '', call('PTTL', KEYS[first]), storedAt(KEYS[first + 1]) }
end
