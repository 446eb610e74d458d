-- What   Part of the scripts of the admission: the field admitted, and the life that this server lives now. A life is a run_id in 40 characters.
-- KEYS   1 {ns}:node
-- ARGV   none of its own
-- Reply  none of its own
local function padded(run)
  return string.format('%-40.40s', run)
end

local server = redis.call('INFO', 'server')
local life = padded(string.match(server, 'run_id:(%w+)') or '')

-- The life in which the node was admitted, the base, the epoch; nothing if it never was.
local function admission(text)
  local base = tonumber(string.sub(text or '', 41, 55))
  if base and #text > 55 then
    return string.sub(text, 1, 40), base, string.sub(text, 56)
  end
end

local function admittedAs(base, epoch)
  return life .. string.format('%015.0f', base) .. epoch
end
