-- What   Take one resource, if it is free, and give it the next token; otherwise leave everything
--        as it was. A counter is renewed at every eighth use only: where it has run out, or never
--        was, the floor takes over.
-- KEYS   none of its own: `lock` and `counter`
-- ARGV   ttlMs, and `value` and `least`
-- Reply  none of its own: `token`, or no number where the request needs another look; an error
--        where the user may not INCR
local token = call('SET', lock, value, 'NX', 'PX', ARGV[1]) and redis.pcall('INCR', counter)
if token == 1 and floor < HIGHEST then
  token = math.max(math.max(floor, counterFloor) + 1, math.min(least, floor + LEAP, HIGHEST))
  if redis.pcall('SET', counter, format('%.0f', token), 'PX', RETENTION).ok then
    floor = token
  else
    -- A counter that was not there must not stay: it would never expire, and hide the floor.
    call('DEL', counter, lock)
    token = nil
  end
elseif type(token) == 'number' and token > counterFloor and token > 1 and token < HIGHEST - AHEAD then
  if token % 8 == 0 then
    call('PEXPIRE', counter, RETENTION)
  end
  if token > floor then
    floor = token + AHEAD
  end
elseif token then
  if type(token) == 'number' then
    call(token == 1 and 'DEL' or 'DECR', counter)
  end
  call('DEL', lock)
  -- A user without the right to INCR is told so: the other look, without it, takes twice as long.
  if type(token) == 'table' and string.find(token.err, 'run th', 1, true) then
    error(token)
  end
  token = nil
end
