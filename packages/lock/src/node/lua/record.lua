-- What   Part of every script that stores or reads tokens: is the memory of this node believed in this life of the server, and what does it store?
-- KEYS   1 {ns}:node, whose fields run, epoch, base and floor are read
-- ARGV   none of its own
-- Reply  none of its own; the script answers { '' } and nil per request where the memory is not believed
-- Note   One line goes before every script: `local RETENTION, RUN = '<retentionMs>', '<run_id>'`, or RUN = false. Since Redis 7 the cache of scripts is neither kept
--        nor replicated, so a script that bears a run_id and is found in the cache was loaded in that very life of the server; the client loads it after asking
--        for the run_id, on the same connection. Otherwise the server is asked each time, which costs as much as the rest.
local call, format, KEYS, ARGV = redis.call, string.format, KEYS, ARGV
local HIGHEST = 999999999999999
local record = call('HMGET', KEYS[1], 'run', 'epoch', 'base', 'floor')
local run, epoch = record[1], record[2]
-- Counters below `base` were written before the last admission and may be stale (an old backup); the floor of that admission stands in for them.
local base, floor = tonumber(record[3] or ''), tonumber(record[4] or '')
if not (run and base and floor) or (RUN and run ~= RUN) then
  epoch = ''
elseif not RUN and not string.find(call('INFO', 'server'), 'run_id:' .. run .. '\r\n', 1, true) then
  epoch = ''
end
epoch = epoch or ''
local floorBefore = floor
