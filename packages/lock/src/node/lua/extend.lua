-- What   Renew all resources of the request if all are still ours. Never creates a key: a key that ran out may have been somebody else's meanwhile.
-- KEYS   per resource: lock, token
-- ARGV   beginning of our lock value (owner|), ttlMs
-- Reply  extended: 1 | missing: 0 | taken: { lock value, PTTL }
local function extend(first, last, at)
  local mine, missing = ARGV[at], false
  for key = first, last, 2 do
    local value = call('GET', KEYS[key])
    if not value then
      missing = true
    elseif not startsWith(value, mine) then
      return { value, call('PTTL', KEYS[key]) }
    end
  end
  if missing then
    return 0
  end
  for key = first, last, 2 do
    call('PEXPIRE', KEYS[key], ARGV[at + 1])
    call('PEXPIRE', KEYS[key + 1], RETENTION)
  end
  return 1
end
