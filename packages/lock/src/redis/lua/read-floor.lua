-- What   Read the floor of an admitted node for the admission of another, and give this node a new
--        epoch in the same script: a token stored here from now on is not in the floor that
--        is read, and no acquisition that began before this moment may count it (T2).
-- KEYS   1 {ns}:node
-- ARGV   a fresh epoch, generation
-- Reply  the floor, or nil if the node is not admitted itself or votes in another generation
--@include admission
local record = redis.call('HMGET', KEYS[1], 'admitted', 'floor')
local standing, isOfRun, counterFloor, generation = admission(record[1])
if not isOfRun or not record[2] or standing == '-' or generation ~= ARGV[2] then
  return false
end
redis.call('HSET', KEYS[1], 'admitted', admittedAs(standing, counterFloor, generation, ARGV[1]))
return record[2]
