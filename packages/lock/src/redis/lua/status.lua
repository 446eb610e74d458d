-- What   What this server says of itself and the node's record. Changes nothing, needs no
--        admission; the first request on every new connection.
-- KEYS   1 {ns}:node
-- ARGV   none
-- Reply  { run_id, redis_version, role, '1' if it has replicas or was one itself since it started,
--        else '0', the server's Unix milliseconds, floor or '', admitted, id, fleet, size,
--        maxTtlMs, durable, format: '' where the record has none }
--@include run-id
local replication = redis.call('INFO', 'replication')
local time = redis.call('TIME')
local record = redis.call('HMGET', KEYS[1], 'admitted', 'floor', 'id', 'fleet', 'size', 'maxTtlMs', 'durable', 'format')
local reply = {
  string.match(server, 'run_id:(%w+)') or '',
  string.match(server, 'redis_version:([^\r\n]+)') or '',
  string.match(replication, 'role:(%w+)') or '',
  (string.find(replication, 'connected_slaves:[1-9]') or string.find(replication, 'master_replid2:0*[1-9a-f]')) and '1' or '0',
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)),
  record[2] or '',
  admission(record[1]) and record[1] or '',
  record[3] or '',
  record[4] or '',
  record[5] or '',
  record[6] or '',
  record[7] or '',
  record[8] or '',
}
return reply
