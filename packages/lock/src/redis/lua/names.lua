-- What   Part of the scripts that look at who waits: the names of those keys.
-- KEYS   1 any key of the namespace
-- ARGV   none of its own
-- Reply  none of its own
--@include start
-- No namespace has a brace, so the first one closes the tag.
local NAMESPACE = sub(KEYS[1], 1, string.find(KEYS[1], '}', 1, true) + 1)

local function queueOf(lock)
  return NAMESPACE .. 'queue:' .. sub(lock, #NAMESPACE + 6)
end
