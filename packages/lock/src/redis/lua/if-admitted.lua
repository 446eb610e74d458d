-- What   Part of every script that stores or reads tokens; what stands behind it is executed only
--        where this node was admitted since its server started.
-- KEYS   1 {ns}:node, whose fields admitted and floor are read
-- ARGV   none of its own
-- Reply  none of its own; the whole script answers '' where the node is not admitted
-- Note   One line is put before every script: `local RETENTION, RUN = '<retentionMs>', '<+ and
--        run_id>'`. Since Redis 7 the cache of scripts is neither kept nor replicated, so a script
--        that bears a run_id and is found in the cache was loaded since the server started; the
--        client loads it after asking for the run_id, on the same connection.
--@include start
local record = call('HMGET', KEYS[1], 'admitted', 'floor')
local admitted, floor, counterFloor = record[1] or '', tonumber(record[2] or ''), nil
if floor and sub(admitted, 1, 40) == RUN then
  -- Counters up to this one were written before the last admission and may be stale (an old
  -- backup); the floor of that admission replaces them. The columns are those of admission.lua.
  counterFloor = tonumber(sub(admitted, 41, 55))
end
if not counterFloor then
  return ''
end
