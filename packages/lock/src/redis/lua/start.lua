-- What   Short names that every script of requests uses. HIGHEST is the highest token there can be.
-- KEYS   none of its own
-- ARGV   none of its own
-- Reply  none of its own
local call, format, sub, KEYS, ARGV = redis.call, string.format, string.sub, KEYS, ARGV
local HIGHEST = 999999999999999
