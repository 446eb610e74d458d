-- What   Plant our key again where there is none, with its token. Only for an owner that a quorum confirmed in the same round.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   ttlMs, then per request: lock value (owner|label), token
-- Reply  as each.lua says, per request extended: 1 | taken: { lock value, PTTL }
--@include start
--@include record
--@include counter

local function request(first, last, at)
  local mine, token = ARGV[at], tonumber(ARGV[at + 1])
  for key = first, last, 2 do
    local value = call('GET', KEYS[key])
    if value and value ~= mine then
      return { value, call('PTTL', KEYS[key]) }
    end
  end
  for key = first, last, 2 do
    store(KEYS[key + 1], math.max(token, storedAt(KEYS[key + 1])))
    call('SET', KEYS[key], mine, 'PX', ARGV[1])
  end
  return 1
end

local FIRST_KEY, SHARED, FIELDS = 2, 1, 2
--@include each
--@include raised
return replies
