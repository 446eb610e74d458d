-- What   Read the floor of an admitted node for the admission of another, and give this node a new
--        incarnation in the same script: a token stored here from now on is not in the floor that
--        is read, and no acquisition that began before this moment may count it (T2).
-- KEYS   1 {ns}:node
-- ARGV   a fresh incarnation
-- Reply  the floor, or nil if the node is not admitted itself
--@include format
--@include run-id
local node = redis.call('HMGET', KEYS[1], 'admitted', 'floor')
local run, counterFloor = admission(node[1])
if run ~= runId or not node[2] then
  return false
end
redis.call('HSET', KEYS[1], 'admitted', admittedAs(counterFloor, ARGV[1]))
return node[2]
