-- What   One call for everything that was asked of this node in one turn of a client's event loop: a list of requests, executed in order.
--        A node whose memory is not believed in this life of the server (run differs, or its record or floor is gone) answers only releases.
--        A request that fails (a foreign key in the place of ours, no memory left) fails alone: its reply is the error's text.
-- KEYS   1 {ns}:node, 2 {ns}:floor, then per request and resource: {ns}:lock:<resource>, {ns}:token:<resource>
-- ARGV   1 retentionMs, then per request: its letter, the number of its resources, its own fields (see the file of each request)
-- Reply  { epoch, or '' when quarantined, or nil when only releases were asked; per request its reply, nil where quarantined, a string where it failed }
-- Note   One line goes before this file: `local RUN = '<run_id>'`, or `local RUN = false`. Since Redis 7 the cache of scripts is neither kept nor replicated, so a
--        script that bears a run_id and is found in the cache was loaded in that very life of the server; the client loads it after asking for the run_id, on the
--        same connection. Otherwise the server is asked each time, which costs more than all the rest.
local call, format = redis.call, string.format
local RETENTION = ARGV[1]
local HIGHEST = 999999999999999

-- Counters below `base` were written before the last admission and may be stale (an old backup); the floor of that admission stands in for them.
local epoch, base, floor, floorBefore

-- Is the memory of this node believed? Asked once per call, by the first request that needs it.
local function isBelieved()
  if epoch then
    return epoch ~= ''
  end
  epoch = ''
  local node = call('HMGET', KEYS[1], 'run', 'epoch', 'base')
  local stored = tonumber(call('GET', KEYS[2]) or '')
  if not (node[1] and node[2] and node[3] and stored) then
    return false
  end
  if RUN and node[1] ~= RUN then
    return false
  end
  if not RUN and not string.find(call('INFO', 'server'), 'run_id:' .. node[1] .. '\r\n', 1, true) then
    return false
  end
  epoch, base, floor, floorBefore = node[2], tonumber(node[3]), stored, stored
  return true
end

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

-- What answers the letter, and with how many fields of its own.
local function requestOf(letter)
  if letter == 'g' then
    return grant, 3
  elseif letter == 'r' then
    return release, 2
  elseif letter == 'e' then
    return extend, 2
  elseif letter == 's' then
    return seal, 2
  elseif letter == 'h' then
    return heal, 4
  elseif letter == 'i' then
    return inspect, 0
  elseif letter == 't' then
    return raise, 2
  end
end

local replies = { false }
local key, at, count = 3, 2, 1
while ARGV[at] do
  local request, fields = requestOf(ARGV[at])
  local nextKey = key + 2 * tonumber(ARGV[at + 1])
  count = count + 1
  if request == release or isBelieved() then
    local done, reply = pcall(request, key, nextKey - 1, at + 2)
    if not done then
      reply = type(reply) == 'table' and reply.err or tostring(reply)
    end
    replies[count] = reply
  else
    replies[count] = false
  end
  key, at = nextKey, at + 2 + fields
end

-- Once for the whole call. Should this very command fail, the whole call fails, and with it every answer that needed it.
if floor and floor > floorBefore then
  call('SET', KEYS[2], format('%.0f', floor))
end
replies[1] = epoch or false
return replies
