-- What   How this server and its record of us stand. Changes nothing, needs no admission; the first question on every new connection.
-- KEYS   1 {ns}:node, 2 {ns}:floor
-- ARGV   none
-- Reply  { run_id, redis_version, role, uptime in seconds, the server's Unix milliseconds, floor or '',
--          run, id, fleet, size, maxTtlMs, epoch, base, durable, ticketRun, ticketAt: '' where the record has none }
local server = redis.call('INFO', 'server')
local replication = redis.call('INFO', 'replication')
local time = redis.call('TIME')
local record = redis.call('HMGET', KEYS[1], 'run', 'id', 'fleet', 'size', 'maxTtlMs', 'epoch', 'base', 'durable', 'ticketRun', 'ticketAt')
local reply = {
  string.match(server, 'run_id:(%w+)') or '',
  string.match(server, 'redis_version:([^\r\n]+)') or '',
  string.match(replication, 'role:(%w+)') or '',
  string.match(server, 'uptime_in_seconds:(%d+)') or '',
  string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)),
  redis.call('GET', KEYS[2]) or '',
}
for index = 1, 10 do
  reply[#reply + 1] = record[index] or ''
end
return reply
