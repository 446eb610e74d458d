-- What   Renew all resources of each request if all still have this owner. If there is an heir they
--        become its own, and those that are already are renewed. Never creates a key: a key that
--        ran out may have had another owner meanwhile.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   ttlMs, then per request: beginning of the lock value (owner|), the heir's lock value
--        (owner|label) or ''
-- Reply  as each-request.lua says, per request extended: 1 | missing: 0 | taken: { lock value, PTTL
--        }
--@include start
--@include record

local function request(first, last, at)
  local mine, heir, missing = ARGV[at], ARGV[at + 1], false
  local heirs = sub(heir, 1, string.find(heir, '|', 1, true) or 0)
  for key = first, last, 2 do
    local value = call('GET', KEYS[key])
    if not value then
      missing = true
    elseif sub(value, 1, #mine) ~= mine and (heir == '' or sub(value, 1, #heirs) ~= heirs) then
      return { value, call('PTTL', KEYS[key]) }
    end
  end
  if missing then
    return 0
  end
  for key = first, last, 2 do
    if heir == '' then
      call('PEXPIRE', KEYS[key], ARGV[1])
    else
      -- Processes that wait for the owner wait for the heir from now on.
      local waiting = string.byte(call('GET', KEYS[key]), -1) == 10 and '\n' or ''
      call('SET', KEYS[key], heir .. waiting, 'PX', ARGV[1])
    end
    call('PEXPIRE', KEYS[key + 1], RETENTION)
  end
  return 1
end

local FIRST_KEY, SHARED, FIELDS, quick = 2, 1, 2, false
--@include each-request
return replies
