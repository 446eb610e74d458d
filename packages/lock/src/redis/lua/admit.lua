-- What   Admit this node, if its server still has the run and the memory that the nonce was given
--        to. Its floor rises first, and becomes the counter floor, below which none of its own
--        counters is believed.
-- KEYS   1 {ns}:node
-- ARGV   run_id, nonce, lowest floor, epoch, id, fleet, durable ('1' or '0'), generation,
--        members, founding ('' or what the founders agreed on)
-- Reply  { '1', floor } if admitted by this call | { '0' } if the server was restarted, the memory
--        was lost or the nonce was used since, or others found another fleet with this node
--@include admission
local record = redis.call('HMGET', KEYS[1], 'nonce', 'floor', 'founding')
if run ~= ARGV[1] or record[1] ~= ARGV[2] or (ARGV[10] ~= '' and record[3] ~= ARGV[10]) then
  return { '0' }
end
local floor = math.max(tonumber(record[2] or 0), tonumber(ARGV[3]))
local text = string.format('%.0f', floor)
-- The fields that every grant reads come first: a small hash is searched from the front.
redis.call('DEL', KEYS[1])
-- Nothing precedes the first generation, so the next one need not outwait it.
local since = string.sub(ARGV[8], 1, 2) == '1-' and 0 or nowMs()
redis.call('HSET', KEYS[1], 'admitted', admittedAs('+', floor, ARGV[8], ARGV[4]), 'floor', text, 'id', ARGV[5], 'fleet', ARGV[6], 'durable', ARGV[7], 'format', '1', 'members', ARGV[9], 'since', string.format('%.0f', since))
return { '1', text }
