-- What   Raise marks, which are numbers of the caller's that only rise, and tell all of them. A
--        node that is not admitted keeps them too: it is given those of the others before it is.
-- KEYS   1 {ns}:node, 2 {ns}:marks
-- ARGV   per mark: its name, the number (0 only reads)
-- Reply  { the field admitted, or '' if the node is not admitted, then per mark name and number }
--@include admission
local admitted = redis.call('HGET', KEYS[1], 'admitted')
local standing, isOfRun = admission(admitted)
for index = 1, #ARGV, 2 do
  local stored = tonumber(redis.call('HGET', KEYS[2], ARGV[index]) or '0')
  if tonumber(ARGV[index + 1]) > stored then
    redis.call('HSET', KEYS[2], ARGV[index], ARGV[index + 1])
  end
end
local marks = redis.call('HGETALL', KEYS[2])
local reply = { isOfRun and standing ~= '-' and admitted or '' }
for index = 1, #marks do
  reply[index + 1] = marks[index]
end
return reply
