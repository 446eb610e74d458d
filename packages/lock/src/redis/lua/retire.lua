-- What   Tell a server that it has left: it closes, and keeps the members of the generation that it left
--        with. A locker that still has it in its list goes on to those, and founds nothing with it.
--        It votes again only as a member of a later generation. Nothing changes where the server is a
--        member of that generation under another address, or has come to a later one.
-- KEYS   1 {ns}:node
-- ARGV   fleet, number of the generation, members
-- Reply  '1', or '0' if it belongs to another fleet
--@include admission
local record = redis.call('HMGET', KEYS[1], 'fleet', 'id', 'admitted')
if record[1] and record[1] ~= ARGV[1] then
  return '0'
end
local standing, _, _, _, number = admission(record[3])
local isMember = record[2] and string.find(ARGV[3], '"id":"' .. record[2] .. '"', 1, true)
if isMember or (standing and number >= tonumber(ARGV[2])) then
  return '1'
end
if standing then
  redis.call('HSET', KEYS[1], 'admitted', '-' .. string.sub(record[3], 2))
end
redis.call('HSET', KEYS[1], 'fleet', ARGV[1], 'members', ARGV[3], 'format', '1')
-- An admission that was opened before is not carried out. Its run stays, and with that the id does.
redis.call('HDEL', KEYS[1], 'nonce')
return '1'
