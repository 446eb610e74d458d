-- What   Part of grant.lua and claim.lua. Grants all resources of one request, or none, and stores a
--        token above every token this node stored for any of them. If all have this owner already
--        (the request came twice), answers the same grant again. The lock that a request is refused
--        for is marked as having waiters.
-- KEYS   per resource lock and token, from `first` to `last`
-- ARGV   1 ttlMs, and a lock value at `at`
-- Reply  granted: the token | held: { index of the first resource that has another owner, its lock
--        value, its PTTL }
-- Note   What is reserved for the owner `mine` is free.
--@include counter

-- As having waiters: its release has to look for them. Where that fails, the request is refused all
-- the same.
local function mark(lock, value)
  if string.byte(value, -1) ~= 10 and string.find(value, '|', 1, true) then
    redis.pcall('APPEND', lock, '\n')
  end
end

local function taken(key, first)
  local value = call('GET', KEYS[key])
  mark(KEYS[key], value)
  return { (key - first) / 2 + 1, value, call('PTTL', KEYS[key]) }
end

local function grantAll(first, last, at, mine)
  local value, ttl = ARGV[at], ARGV[1]
  local token, again = 0, true
  for key = first, last, 2 do
    local holder = call('GET', KEYS[key])
    if not holder or (mine and sub(holder, 1, #mine) == mine) then
      again = false
    elseif holder ~= value and holder ~= value .. '\n' then
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
  token = math.max(token, counterFloor) + 1
  for key = first, last, 2 do
    store(KEYS[key + 1], token)
    call('SET', KEYS[key], value, 'PX', ttl)
  end
  return token
end
