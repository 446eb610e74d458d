-- What   Open the admission of a quarantined node: give it an id if it has none, and a nonce. The
--        nonce dies with the memory (restart, FLUSHALL) and is used up by the admission, so an old
--        one admits nothing; so does the id of a node that never was admitted. All is set if
--        absent: lockers that race read the same nonce and the same proposals.
-- KEYS   1 {ns}:node
-- ARGV   a fresh nonce, a fresh id, Unix milliseconds, maxTtlMs, the number of the generation
--        from which on its admission counts, founding ('' or the fleet that this locker would
--        found)
-- Reply  { '0', run_id, id, nonce, ms since the nonce was set, ms since the server started (0:
--        cannot be told), proposed floor, proposed maxTtlMs, the fleet that its founders found, or
--        '' }, or { '1' } if the node is admitted
-- Note   The proposed floor is 100 times the Unix milliseconds of the later of two clocks, the
--        locker's when it asked and the server's when the nonce is stored: the call may have been
--        long under way. A clock
--        past the year 2286 proposes nothing. The server's start counts as the moment the memory
--        was lost only if the record survived the start, and in a server that was never a
--        replica: without a record, a FLUSHALL may have come at any time since, and what a
--        promoted replica lacks, its master may have granted until the end.
--@include admission
local now = nowMs()
local record = redis.call('HMGET', KEYS[1], 'admitted', 'floor', 'id', 'nonce', 'nonceRun', 'nonceAt', 'proposedFloor', 'proposedMaxTtlMs', 'founding')
local standing, isOfRun, _, _, number = admission(record[1])
if isOfRun and record[2] and number >= tonumber(ARGV[5]) then
  return { '1' }
end
-- Milliseconds of 13 digits end in the year 2286, as the range of tokens does.
local function believed(clock)
  return clock < 1e13 and clock or 0
end
local founding = record[9]
local id, nonce, openedAt, proposedFloor, proposedMaxTtlMs = record[3], record[4], record[6], record[7] or '', record[8]
-- Until its first admission the id lasts no longer than this run: a member that has it never voted (plan.ts).
if not id or (not standing and record[5] ~= run) then
  id = ARGV[2]
  redis.call('HSET', KEYS[1], 'id', id)
end
if not nonce or record[5] ~= run then
  nonce, openedAt, proposedFloor, proposedMaxTtlMs = ARGV[1], string.format('%.0f', now), '', ARGV[4]
  founding = nil
  redis.call('HDEL', KEYS[1], 'founding')
  redis.call('HSET', KEYS[1], 'nonce', nonce, 'nonceRun', run, 'nonceAt', openedAt, 'proposedMaxTtlMs', proposedMaxTtlMs)
end
if proposedFloor == '' then
  local later = math.max(believed(now), believed(tonumber(ARGV[3])))
  if later == 0 then
    error({ err = 'CLOCK the node and the locker are in the year 2286 or later' })
  end
  proposedFloor = string.format('%.0f', later * 100)
  redis.call('HSET', KEYS[1], 'proposedFloor', proposedFloor)
end
-- Of founders with different lists the first decide, for as long as the nonce lasts: no node is
-- founded into two. Those with the same list, by the 16 characters at the end, correct each other.
if ARGV[6] ~= '' and (not founding or string.sub(founding, -16) == string.sub(ARGV[6], -16)) then
  founding = ARGV[6]
  redis.call('HSET', KEYS[1], 'founding', founding)
end
local sinceStart = 0
local wasReplica = string.find(redis.call('INFO', 'replication'), 'master_replid2:0*[1-9a-f]')
if standing and not isOfRun and not wasReplica then
  -- Whole seconds, cut off at both ends: one less is certain.
  sinceStart = math.max(0, (string.match(server, 'uptime_in_seconds:(%d+)') - 1) * 1000)
end
return {
  '0',
  run,
  id,
  nonce,
  string.format('%.0f', math.max(0, now - openedAt)),
  string.format('%.0f', sinceStart),
  proposedFloor,
  proposedMaxTtlMs,
  founding or '',
}
