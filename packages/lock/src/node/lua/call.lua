-- What   One call for everything that was asked of this node in one turn of a client's event loop: a list of requests, executed in order.
--        A node whose memory is not believed in this life of the server (run differs, or its record or floor is gone) answers only releases.
--        A request that fails (a foreign key in the place of ours, no memory left) fails alone: its reply is the error's text.
-- KEYS   1 {ns}:node, 2 {ns}:floor, then per request and resource: {ns}:lock:<resource>, {ns}:token:<resource>
-- ARGV   1 retentionMs, then per request: its letter, the number of its resources, its own fields (see the file of each request)
-- Reply  { epoch, or '' when quarantined; per request its reply, nil where quarantined, a string where it failed }
local call, format = redis.call, string.format
local RETENTION = ARGV[1]
local HIGHEST = 999999999999999

local server = call('INFO', 'server')
local node = call('HMGET', KEYS[1], 'run', 'epoch', 'base')
local floor = call('GET', KEYS[2])
local epoch = ''
if node[1] and node[2] and node[3] and floor and node[1] == string.match(server, 'run_id:(%w+)') then
  epoch = node[2]
end
-- Counters below `base` were written before the last admission and may be stale (an old backup); the floor of that admission stands in for them.
local base = tonumber(node[3] or 0)
floor = tonumber(floor or 0)
local floorBefore = floor

local function counterAt(key)
  local text = call('GET', key)
  if not text then
    return nil
  end
  local number = tonumber(text)
  if not number or number < 0 or number > HIGHEST or number ~= math.floor(number) then
    error({ err = 'FOREIGN a token key holds no token' })
  end
  return number
end

-- The highest token that may have been stored here for the resource.
local function storedAt(key)
  return math.max(counterAt(key) or floor, base)
end

local function store(key, token)
  if token > HIGHEST then
    error({ err = 'EXHAUSTED no token is left above ' .. format('%.0f', HIGHEST) })
  end
  call('SET', key, format('%.0f', token), 'PX', RETENTION)
  if token > floor then
    floor = token
  end
end

local function startsWith(text, start)
  return string.sub(text, 1, #start) == start
end

--@include tell
--@include grant
--@include seal
--@include extend
--@include heal
--@include release
--@include inspect
--@include raise

local requests = {
  g = { grant, 3 },
  s = { seal, 2 },
  e = { extend, 2 },
  h = { heal, 4 },
  r = { release, 2 },
  i = { inspect, 0 },
  t = { raise, 2 },
}

local replies = { epoch }
local key, at, count = 3, 2, 1
while ARGV[at] do
  local letter = ARGV[at]
  local nextKey = key + 2 * tonumber(ARGV[at + 1])
  count = count + 1
  if epoch == '' and letter ~= 'r' then
    replies[count] = false
  else
    local done, reply = pcall(requests[letter][1], key, nextKey - 1, at + 2)
    if not done then
      reply = type(reply) == 'table' and reply.err or tostring(reply)
    end
    replies[count] = reply
  end
  key, at = nextKey, at + 2 + requests[letter][2]
end

-- Once for the whole call. Should this very command fail, the whole call fails, and with it every answer that needed it.
if floor > floorBefore then
  call('SET', KEYS[2], format('%.0f', floor))
end
return replies
