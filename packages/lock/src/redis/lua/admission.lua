-- What   Part of the scripts that read or change a node's record (record.ts): the run_id of this
--        server, and the field admitted, which holds how the node stands, the run_id, counter
--        floor, generation and epoch. A record of an unknown format fails the script, which then
--        changes nothing: a newer version wrote it; taken for a lost memory, it would be founded
--        over.
-- KEYS   1 {ns}:node
-- ARGV   none of its own
-- Reply  none of its own
-- Note   The field begins with how the node stands and the first 39 characters of the run_id: + for
--        a node that votes, - while it has accepted the next generation and does not. Then 15
--        digits, the counter floor (columns 41 to 55, read in grant.lua and if-admitted.lua as well).
local format = redis.call('HGET', KEYS[1], 'format')
if format and format ~= '1' then
  error({ err = 'FORMAT the record of this node has format ' .. format })
end

local server = redis.call('INFO', 'server')
local run = string.match(server, 'run_id:(%w+)') or ''

local function head(standing)
  return string.sub(standing .. string.format('%-40.40s', run), 1, 40)
end

-- How the node stands, whether that was written in this run of the server, the counter floor, the generation,
-- its number; nothing if the node never was admitted.
local function admission(text)
  local counterFloor = tonumber(string.sub(text or '', 41, 55))
  if not counterFloor or #text <= 55 then
    return nil
  end
  local standing, generation = string.sub(text, 1, 1), string.match(string.sub(text, 56), '([^:]*):') or ''
  return standing, string.sub(text, 1, 40) == head(standing), counterFloor, generation, tonumber(string.match(generation, '(%d+)') or '0')
end

local function admittedAs(standing, counterFloor, generation, epoch)
  return head(standing) .. string.format('%015.0f', counterFloor) .. generation .. ':' .. epoch
end

local function nowMs()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
