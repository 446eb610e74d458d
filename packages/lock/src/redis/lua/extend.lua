-- What   Renew all resources of each request if all still have this owner. Never creates a key: a
--        key that ran out may have had another owner meanwhile.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   ttlMs, then per request: beginning of the lock value (owner|)
-- Reply  as each-request.lua says, per request extended: 1 | missing: 0 | taken: { lock value, PTTL
--        }
--@include if-admitted
--@include each-request

local function request(first, last, at)
  local mine, missing = ARGV[at], false
  for key = first, last, 2 do
    local value = call('GET', KEYS[key])
    if not value then
      missing = true
    elseif sub(value, 1, #mine) ~= mine then
      return { value, call('PTTL', KEYS[key]) }
    end
  end
  if missing then
    return 0
  end
  for key = first, last, 2 do
    call('PEXPIRE', KEYS[key], ARGV[1])
    call('PEXPIRE', KEYS[key + 1], RETENTION)
  end
  return 1
end

return eachRequest(admitted, 2, 1, 1, request)
