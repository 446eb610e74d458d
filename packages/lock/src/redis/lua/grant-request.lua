-- What   Part of grant.lua and claim.lua. Grants all resources of one request, or none, and stores a
--        token above every token this node stored for any of them. If all have this owner already
--        (the request came twice), answers the same grant again.
-- KEYS   per resource lock and token, from `first` to `last`
-- ARGV   1 ttlMs, and a lock value at `at`
-- Reply  granted: the token | held: { index of the first resource that has another owner, its lock
--        value, its PTTL }
-- Note   What is reserved for the owner `mine` is free.
--@include counter

local function grantAll(first, last, at, mine)
  local value, ttl = ARGV[at], ARGV[1]
  local token, again = 0, true
  for key = first, last, 2 do
    local holder = call('GET', KEYS[key])
    if not holder or (mine and sub(holder, 1, #mine) == mine) then
      again = false
    elseif holder ~= value then
      return { (key - first) / 2 + 1, holder, call('PTTL', KEYS[key]) }
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
