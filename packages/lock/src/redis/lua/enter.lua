-- What   Third round: a member of the next generation that was one before enters it, above the
--        highest floor that was told as the nodes closed, and votes again. Also for a node that was
--        away while generations went by. One that votes in it already only notes the members again
--        where that is shorter: fewer that left are untold.
-- KEYS   1 {ns}:node
-- ARGV   generation, its number, members, lowest floor, epoch, since which generation
--        the node has been a member without a break
-- Reply  '1', or '0' if the node is not admitted, is there already, or was no member in between:
--        then it is rebuilt like a new one
--@include admission
local record = redis.call('HMGET', KEYS[1], 'admitted', 'floor', 'members')
local standing, isOfRun, _, generation, number = admission(record[1])
if isOfRun and generation == ARGV[1] and record[3] and #ARGV[3] < #record[3] then
  redis.call('HSET', KEYS[1], 'members', ARGV[3])
end
if not standing or not isOfRun or not record[2] or number >= tonumber(ARGV[2]) or number < tonumber(ARGV[6]) then
  return '0'
end
local floor = math.max(tonumber(record[2]), tonumber(ARGV[4]))
local since = string.format('%.0f', nowMs())
redis.call('HSET', KEYS[1], 'admitted', admittedAs('+', floor, ARGV[1], ARGV[5]), 'floor', string.format('%.0f', floor), 'members', ARGV[3], 'since', since)
redis.call('HDEL', KEYS[1], 'promised', 'accepted', 'acceptedMembers')
return '1'
