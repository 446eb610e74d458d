-- What   Take all resources of each request, or none, and store a token above every token this node stored for any of them.
--        If all are already ours (the request came twice), answer the same grant again.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   1 the number of resources of each request, then per request: lock value (owner|label), ttlMs
-- Reply  { epoch, per request granted: the token | held: { index of the first resource that is another's, its lock value, its PTTL } }
--@include record
--@include counter

local function taken(key, first)
  return { (key - first) / 2 + 1, call('GET', KEYS[key]), call('PTTL', KEYS[key]) }
end

-- A counter is renewed at every eighth use: where it runs out, the floor takes over, so this only keeps the work of renewing small.
local function nextToken(key)
  local token = call('INCR', key)
  if token <= base or token == 1 or token > HIGHEST then
    -- A counter that was not there must not stay: it would have no end, and hide the floor.
    call(token == 1 and 'DEL' or 'DECR', key)
    local counter = token == 1 and floor or token - 1
    token = (counter > base and counter or base) + 1
    store(key, token)
  elseif token % 8 == 0 then
    call('PEXPIRE', key, RETENTION)
  end
  if token > floor then
    floor = token
  end
  return token
end

local function request(first, last, at)
  local value, ttl = ARGV[at], ARGV[at + 1]
  if last == first + 1 and call('SET', KEYS[first], value, 'NX', 'PX', ttl) then
    local done, token = pcall(nextToken, KEYS[last])
    if done then
      return token
    end
    call('DEL', KEYS[first])
    error(token)
  end
  local token, again = 0, true
  for key = first, last, 2 do
    local holder = call('GET', KEYS[key])
    if not holder then
      again = false
    elseif holder ~= value then
      return taken(key, first)
    end
    local counter = counterAt(KEYS[key + 1])
    if not counter then
      again, counter = false, floor
    end
    token = math.max(token, counter)
  end
  if again then
    return token
  end
  token = math.max(token, base) + 1
  for key = first, last, 2 do
    store(KEYS[key + 1], token)
    call('SET', KEYS[key], value, 'PX', ttl)
  end
  return token
end

local FIRST_KEY, KEYS_EACH, FIELDS = 2, 2, 2
--@include each
--@include raised
return replies
