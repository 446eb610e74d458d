-- What   Admit this node, if its server still has the run and the memory that the nonce was given
--        to. Its floor rises first, and becomes the counter floor, below which none of its own
--        counters is believed.
-- KEYS   1 {ns}:node
-- ARGV   run_id, nonce, lowest floor, incarnation, id, fleet, size, maxTtlMs, durable ('1' or '0')
-- Reply  { '1', floor } if admitted by this call | { '0' } if the server was restarted, the memory
--        was lost or the nonce was used since
-- Note   The nonce is stored in the field ticket.
--@include format
--@include run-id
if runId ~= padded(ARGV[1]) or redis.call('HGET', KEYS[1], 'ticket') ~= ARGV[2] then
  return { '0' }
end
local floor = math.max(tonumber(redis.call('HGET', KEYS[1], 'floor') or 0), tonumber(ARGV[3]))
local text = string.format('%.0f', floor)
-- The fields that every grant reads come first: a small hash is searched from the front.
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'admitted', admittedAs(floor, ARGV[4]), 'floor', text, 'id', ARGV[5], 'fleet', ARGV[6], 'size', ARGV[7], 'maxTtlMs', ARGV[8], 'durable', ARGV[9], 'format', '1')
return { '1', text }
