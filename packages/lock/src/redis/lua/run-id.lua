-- What   Part of the scripts of the admission: the run_id of this server in 40 characters, and the
--        field admitted, which holds run_id, counter floor and incarnation.
-- KEYS   1 {ns}:node
-- ARGV   none of its own
-- Reply  none of its own
local function padded(run)
  return string.format('%-40.40s', run)
end

local server = redis.call('INFO', 'server')
local runId = padded(string.match(server, 'run_id:(%w+)') or '')

-- The run_id for which the node was admitted, the counter floor, the incarnation; nothing if it
-- never was admitted.
local function admission(text)
  local counterFloor = tonumber(string.sub(text or '', 41, 55))
  if counterFloor and #text > 55 then
    return string.sub(text, 1, 40), counterFloor, string.sub(text, 56)
  end
end

local function admittedAs(counterFloor, incarnation)
  return runId .. string.format('%015.0f', counterFloor) .. incarnation
end
