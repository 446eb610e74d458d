-- What   Part of every script that stores or reads tokens: is this node admitted since its server
--        started, and what does it store?
-- KEYS   1 {ns}:node, whose fields admitted and floor are read
-- ARGV   none of its own
-- Reply  none of its own; the whole script answers '' where the node is not admitted
-- Note   One line is put before every script: `local RETENTION, RUN = '<retentionMs>', '<run_id>'`,
--        or RUN = false. Since Redis 7 the cache of scripts is neither kept nor replicated, so a
--        script that bears a run_id and is found in the cache was loaded since the server started;
--        the client loads it after asking for the run_id, on the same connection. Otherwise the
--        server is asked each time, which costs as much as the rest.
local record = call('HMGET', KEYS[1], 'admitted', 'floor')
local admitted, floor, counterFloor = record[1] or '', tonumber(record[2] or ''), nil
if floor then
  local run = sub(admitted, 1, 40)
  local server = not RUN and call('INFO', 'server')
  -- In format 2 the field begins with a mark and 39 characters of the run_id (see run-id.lua).
  if run == RUN or (RUN and run == '2' .. sub(RUN, 1, 39))
    or (server and string.find(server, 'run_id:' .. string.match(run, '^%S*') .. '\r\n', 1, true))
    or (server and sub(run, 1, 1) == '2' and string.find(server, 'run_id:' .. string.match(sub(run, 2), '^%S*'), 1, true)) then
    -- Counters up to this one were written before the last admission and may be stale (an old
    -- backup); the floor of that admission replaces them.
    counterFloor = tonumber(sub(admitted, 41, 55))
  end
end
if not counterFloor then
  return ''
end
local floorBefore = floor
