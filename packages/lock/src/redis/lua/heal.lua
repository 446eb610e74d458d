-- What   Create the key again where there is none, with its token. Only for an owner that a quorum
--        confirmed in the same round.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   ttlMs, then per request: lock value (owner|label), token
-- Reply  as each-request.lua says, per request extended: 1 | taken: { lock value, PTTL }
--@include counter
--@include each-request

local function request(first, last, at)
  local value, token = ARGV[at], tonumber(ARGV[at + 1])
  local mine = sub(value, 1, string.find(value, '|', 1, true))
  for key = first, last, 2 do
    local holder = call('GET', KEYS[key])
    if holder and sub(holder, 1, #mine) ~= mine then
      return { holder, call('PTTL', KEYS[key]) }
    end
  end
  for key = first, last, 2 do
    store(KEYS[key + 1], math.max(token, storedAt(KEYS[key + 1])))
    call('SET', KEYS[key], value, 'PX', ARGV[1])
  end
  return 1
end

local replies = eachRequest(admitted, 2, 1, 2, request)
storeFloor()
return replies
