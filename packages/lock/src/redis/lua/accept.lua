-- What   Second round: this node accepts the next generation and closes. It does not vote until
--        that generation, or one after it, is opened; so its floor, told now, is above every token
--        that it helps to issue in the present one.
-- KEYS   1 {ns}:node
-- ARGV   the field admitted as it was noted, ballot, members, how many ms the present generation
--        must have been open here, epoch
-- Reply  { '1', floor } | { '0', '' } if the promise or the field has changed | { '2', how many ms
--        are missing }
--@include admission
local record = redis.call('HMGET', KEYS[1], 'admitted', 'floor', 'promised', 'since')
local standing, isOfRun, counterFloor, generation = admission(record[1])
if not isOfRun or not record[2] or record[1] ~= ARGV[1] or record[3] ~= ARGV[2] then
  return { '0', '' }
end
local now = nowMs()
local missing = tonumber(record[4] or '0') + tonumber(ARGV[4]) - now
if standing ~= '-' and missing > 0 then
  return { '2', string.format('%.0f', missing) }
end
redis.call('HSET', KEYS[1], 'admitted', admittedAs('-', counterFloor, generation, ARGV[5]), 'accepted', ARGV[2], 'acceptedMembers', ARGV[3])
return { '1', record[2] }
