-- What   One page of the names of the resources that have a counter, for an admitted node: of
--        others the names would be incomplete. Changes nothing.
-- KEYS   1 {ns}:node
-- ARGV   the cursor (0 to begin with), what token keys begin with as a pattern, its length
-- Reply  { next cursor: '0' at the end, names… }, or nil if the node is not admitted. A name that
--        has a counter from the first page to the last is on one of them; others may be.
--@include admission
local standing, isOfRun = admission(redis.call('HGET', KEYS[1], 'admitted'))
if not isOfRun or standing == '-' then
  return false
end
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2] .. '*', 'COUNT', '1000')
local reply = { page[1] }
for index = 1, #page[2] do
  reply[index + 1] = string.sub(page[2][index], ARGV[3] + 1)
end
return reply
