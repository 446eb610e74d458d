-- What   Raise a mark, a number of the caller's that only rises, to at least the given one. It says
--        nothing of locks and is kept for ever, so the node need not be admitted.
-- KEYS   1 {ns}:mark:<name>
-- ARGV   the number (0 only reads)
-- Reply  the number that is stored now
local stored = tonumber(redis.call('GET', KEYS[1]) or '0')
if tonumber(ARGV[1]) > stored then
  redis.call('SET', KEYS[1], ARGV[1])
  return ARGV[1]
end
return string.format('%.0f', stored)
