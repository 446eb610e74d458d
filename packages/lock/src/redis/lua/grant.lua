-- What   Grant all resources of each request, or none, and store a token above every token this
--        node stored for any of them. If all have this owner already (the request came twice),
--        answer the same grant again.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   ttlMs, then per request: lock value (owner|label)
-- Reply  as each-request.lua says, per request granted: the token | held: { index of the first
--        resource that has another owner, its lock value, its PTTL }
-- Note   A single request for a single resource may bear one word more: the field admitted as last
--        heard. If it still is that and the resource is granted, the whole reply is the token.
--        Nearly every call is of that kind, so next to nothing is defined before it: the server pays
--        for every definition.
--        Takes what is free, also in front of a queue: a first try that comes before anybody has
--        noticed that the lock is free overtakes those that wait, once.
--@include start

-- Takes one resource, if it is free, and gives it the next token; otherwise leaves everything as it
-- was. A counter is renewed at every eighth use only: where it has run out, or never was, the floor
-- takes over. Returns the token and the floor; in place of the token false where the resource is
-- held, nil where the counter needs another look: both are left to grantAll.
local function takeFree(lock, counter, value, floor, counterFloor)
  -- The floor goes up in steps, so that a counter that leads all others does not write it down with
  -- every token.
  local AHEAD = 7
  local token = call('SET', lock, value, 'NX', 'PX', ARGV[1]) and redis.pcall('INCR', counter)
  if token == 1 and floor < HIGHEST then
    token = math.max(floor, counterFloor) + 1
    if redis.pcall('SET', counter, string.format('%.0f', token), 'PX', RETENTION).ok then
      floor = token
    else
      -- A counter that was not there must not stay: it would never expire, and hide the floor.
      call('DEL', counter, lock)
      token = nil
    end
  elseif type(token) == 'number' and token > counterFloor and token > 1 and token < HIGHEST - AHEAD then
    if token % 8 == 0 then
      call('PEXPIRE', counter, RETENTION)
    end
    if token > floor then
      floor = token + AHEAD
    end
  elseif token then
    if type(token) == 'number' then
      call(token == 1 and 'DEL' or 'DECR', counter)
    end
    call('DEL', lock)
    -- A user without the right to INCR is told so, by failing the whole call: all of its requests lack it.
    -- The other look, without it, takes twice as long.
    if type(token) == 'table' and string.find(token.err, 'run th', 1, true) then
      error(token)
    end
    token = nil
  end
  return token, floor
end

-- That the field is the one last heard is enough: this text bears RUN, so the server was not restarted since
-- (if-admitted.lua). Of its columns the counter floor is read here; admission.lua says what stands where.
if #ARGV == 3 and #KEYS == 3 then
  local record = call('HMGET', KEYS[1], 'admitted', 'floor')
  local before, counterFloor = tonumber(record[2]), tonumber(sub(ARGV[3], 41, 55))
  if before and record[1] == ARGV[3] then
    local token, floor = takeFree(KEYS[2], KEYS[3], ARGV[2], before, counterFloor)
    if token then
      if floor > before then
        call('HSET', KEYS[1], 'floor', format('%.0f', floor))
      end
      return token
    end
  end
  -- What follows counts the requests by #ARGV, and this word is part of none.
  ARGV[3] = nil
end

--@include grant-request
--@include each-request

local function quick(first, last, at)
  if last ~= first + 1 then
    return nil
  end
  local token, higher = takeFree(KEYS[first], KEYS[last], ARGV[at], floor, counterFloor)
  floor = higher
  return token
end

local replies = eachRequest(admitted, 2, 1, 1, grantAll, quick)
storeFloor()
return replies
