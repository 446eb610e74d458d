-- What   Grant all resources of each request, or none, and store a token above every token this
--        node stored for any of them. If all have this owner already (the request came twice),
--        answer the same grant again. The lock that a request is refused for is marked as having
--        waiters.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   ttlMs, least token, then per request: lock value (owner|label, and a line feed if others
--        may wait)
-- Reply  as each-request.lua says, per request granted: the token | held: { index of the first
--        resource that has another owner, its lock value, its PTTL }
-- Note   A single request for a single resource may bear one word more: the field admitted as last
--        heard. If it still is that and the resource is granted, the whole reply is the token.
--        Nearly every call is of that kind, so nothing is defined before it: the server pays for
--        every definition.
--@include start
-- The floor goes up in steps, so that a counter that leads all others does not write it down with
-- every token.
local AHEAD = 7
-- A resource without a counter gets the least token that is asked for, if that is above the floor
-- by no more than this: however wrong a client is, one grant spends no more tokens.
local LEAP = 65536
local least = tonumber(ARGV[2])

if #ARGV == 4 and #KEYS == 3 then
  local record = call('HMGET', KEYS[1], 'admitted', 'floor')
  local floor, counterFloor = tonumber(record[2]), tonumber(sub(ARGV[4], 41, 55))
  if floor and record[1] == ARGV[4] then
    local before, lock, counter, value = floor, KEYS[2], KEYS[3], ARGV[3]
--@include free-resource
    if token then
      if floor > before then
        call('HSET', KEYS[1], 'floor', format('%.0f', floor))
      end
      return token
    end
  end
  ARGV[4] = nil
end

--@include record
--@include counter

local mine = false
--@include grant-request

local function quick(first, last, at)
  if last ~= first + 1 then
    return nil
  end
  local lock, counter, value = KEYS[first], KEYS[last], ARGV[at]
--@include free-resource
  return token
end

local request = grantAll
local FIRST_KEY, SHARED, FIELDS = 2, 2, 1
--@include each-request
--@include store-floor
return replies
