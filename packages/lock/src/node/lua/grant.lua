-- What   Take all resources of the request, or none, and store a token above every token this node stored for any of them.
--        If all are already ours (the request came twice), answer the same grant again.
-- KEYS   per resource: lock, token
-- ARGV   lock value (owner|label), ttlMs
-- Reply  granted: the token | held: { index of the first resource that is another's, its lock value, its PTTL }
local function grant(first, last, at)
  local mine, token, again = ARGV[at], 0, true
  for key = first, last, 2 do
    local value = call('GET', KEYS[key])
    if not value then
      again = false
    elseif value ~= mine then
      return { (key - first) / 2 + 1, value, call('PTTL', KEYS[key]) }
    end
    local counter = counterAt(KEYS[key + 1])
    if not counter then
      again, counter = false, floor
    end
    if counter > token then
      token = counter
    end
  end
  if again then
    return token
  end
  token = (token > base and token or base) + 1
  for key = first, last, 2 do
    store(KEYS[key + 1], token)
    call('SET', KEYS[key], mine, 'PX', ARGV[at + 1])
  end
  return token
end
