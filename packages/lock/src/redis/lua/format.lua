-- What   Part of the scripts that change a node's record: they fail on a record of a format that
--        they do not know, and change nothing. A newer version wrote it; taken for a lost memory,
--        it would be founded over.
-- KEYS   1 {ns}:node
-- ARGV   none of its own
-- Reply  none of its own
local format = redis.call('HGET', KEYS[1], 'format')
if format and format ~= '1' then
  error({ err = 'FORMAT the record of this node has format ' .. format })
end
