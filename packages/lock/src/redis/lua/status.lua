-- What   What this server says of itself and the node's record. Changes nothing, needs no
--        admission; the first request on every new connection.
-- KEYS   1 {ns}:node
-- ARGV   none
-- Reply  { run_id, redis_version, role, '1' if it has replicas or was one itself since it started,
--        else '0', the server's Unix milliseconds, format, floor, admitted, id, fleet, durable,
--        members, since, promised }: '' where the record has none
local server = redis.call('INFO', 'server')
local replication = redis.call('INFO', 'replication')
local time = redis.call('TIME')
local record = redis.call('HMGET', KEYS[1], 'format', 'floor', 'admitted', 'id', 'fleet', 'durable', 'members', 'since', 'promised')
local reply = {
  string.match(server, 'run_id:(%w+)') or '',
  string.match(server, 'redis_version:([^\r\n]+)') or '',
  string.match(replication, 'role:(%w+)') or '',
  (string.find(replication, 'connected_slaves:[1-9]') or string.find(replication, 'master_replid2:0*[1-9a-f]')) and '1' or '0',
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)),
}
for index = 1, 9 do
  reply[5 + index] = record[index] or ''
end
return reply
