-- What   Before the replies of a script that stores tokens: the floor rises once for the whole
--        call. Should this very command fail, the whole call fails, and with it every answer that
--        needed it.
-- KEYS   1 {ns}:node
-- ARGV   none of its own
-- Reply  none of its own
if floor > floorBefore then
  call('HSET', KEYS[1], 'floor', format('%.0f', floor))
end
