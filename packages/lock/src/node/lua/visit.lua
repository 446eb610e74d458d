-- What   Read the floor of an admitted node for the admission of another, and give this node a new epoch in the same breath: a token stored here from now on is
--        not in the floor we take away, and no attempt that began before this moment may count it (T2).
-- KEYS   1 {ns}:node
-- ARGV   a fresh epoch
-- Reply  the floor, or nil if the node is not admitted itself
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local node = redis.call('HMGET', KEYS[1], 'run', 'epoch', 'base', 'floor')
local floor = node[4]
if node[1] ~= run or not node[2] or not node[3] or not floor then
  return false
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1])
return floor
