-- What   Short names and limits that every script of a verb uses. A script includes what it uses, and
--        each part what it uses itself; a part that was included already is not included again.
-- KEYS   none of its own
-- ARGV   none of its own
-- Reply  none of its own
local call, format, sub, KEYS, ARGV = redis.call, string.format, string.sub, KEYS, ARGV
-- The highest token there can be.
local HIGHEST = 999999999999999
