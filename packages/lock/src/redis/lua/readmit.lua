-- What   Admit a node that kept everything, as it was: its generation, and what it has promised and
--        accepted for the next one, stay.
-- KEYS   1 {ns}:node
-- ARGV   run_id, nonce, lowest floor, epoch
-- Reply  as admit.lua says
--@include admission
local record = redis.call('HMGET', KEYS[1], 'nonce', 'floor', 'admitted')
local standing, _, _, generation = admission(record[3])
if run ~= ARGV[1] or record[1] ~= ARGV[2] or not standing or not record[2] then
  return { '0' }
end
local floor = math.max(tonumber(record[2]), tonumber(ARGV[3]))
local text = string.format('%.0f', floor)
redis.call('HSET', KEYS[1], 'admitted', admittedAs(standing, floor, generation, ARGV[4]), 'floor', text)
redis.call('HDEL', KEYS[1], 'nonce', 'nonceRun', 'nonceAt', 'proposedFloor', 'proposedMaxTtlMs', 'founding')
return { '1', text }
