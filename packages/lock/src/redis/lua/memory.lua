-- What   How much memory this server uses, its limit, and what it does there. Changes nothing,
--        needs no admission.
-- KEYS   1 {ns}:node
-- ARGV   none
-- Reply  { bytes used, limit in bytes: '0' for none, eviction policy }: '' for what it does not say
local memory = redis.call('INFO', 'memory')
return {
  string.match(memory, 'used_memory:(%d+)') or '',
  string.match(memory, 'maxmemory:(%d+)') or '',
  string.match(memory, 'maxmemory_policy:([%w-]+)') or '',
}
