-- What   Take all resources of the request, or none, and store a token above every token this node stored for any of them.
--        If all are already ours (the request came twice), answer the same grant again.
-- KEYS   per resource: lock, token
-- ARGV   owner, label, ttlMs
-- Reply  granted: the token | held: { index of the first resource that is another's, its lock value, its PTTL }
local function grant(first, last, at)
  local mine = ARGV[at] .. '|'
  local token, again = 0, true
  for key = first, last, 2 do
    local value = call('GET', KEYS[key])
    if not value then
      again = false
    elseif not startsWith(value, mine) then
      return { (key - first) / 2 + 1, value, call('PTTL', KEYS[key]) }
    end
    local counter = counterAt(KEYS[key + 1])
    if not counter then
      again = false
    end
    token = math.max(token, counter or floor)
  end
  if again then
    return token
  end
  token = math.max(token, base) + 1
  for key = first, last, 2 do
    store(KEYS[key + 1], token)
    call('SET', KEYS[key], mine .. ARGV[at + 1], 'PX', ARGV[at + 2])
  end
  return token
end
