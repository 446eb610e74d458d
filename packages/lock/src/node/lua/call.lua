-- What   One call for everything that was asked of this node in one turn of a client's event loop: a list of requests, executed in order.
--        A node whose memory is not believed in this life of the server (run differs, or its record or floor is gone) answers only releases.
--        A request that fails (a foreign key in the place of ours, no memory left) fails alone: its reply is the error's text.
-- KEYS   1 {ns}:node, 2 {ns}:floor, then per request and resource: {ns}:lock:<resource>, {ns}:token:<resource>
-- ARGV   per request: its letter, followed by the number of its resources unless it is one; its own fields (see the file of each request)
-- Reply  { epoch, or '' when quarantined, or nil when only releases were asked; per request its reply, nil where quarantined, a string where it failed }
-- Note   One line goes before this file: `local RETENTION, RUN = '<retentionMs>', '<run_id>'`, or RUN = false. Since Redis 7 the cache of scripts is neither kept nor replicated, so a
--        script that bears a run_id and is found in the cache was loaded in that very life of the server; the client loads it after asking for the run_id, on the
--        same connection. Otherwise the server is asked each time, which costs more than all the rest.
local call, format, sub, KEYS, ARGV = redis.call, string.format, string.sub, KEYS, ARGV
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
  if not number or number < 0 or number > HIGHEST or number % 1 ~= 0 then
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
  return sub(text, 1, #start) == start
end

--@include tell
-- What answers the letter, and with how many fields of its own. The functions are made here, when they are asked for: making all of them for every call costs as
-- much as a grant.
local function requestOf(letter)
  if letter == 'g' then
--@include grant
    return grant, 2
  elseif letter == 'r' then
--@include release
    return release, 2
  elseif letter == 'e' then
--@include extend
    return extend, 2
  elseif letter == 's' then
--@include seal
    return seal, 2
  elseif letter == 'h' then
--@include heal
    return heal, 3
  elseif letter == 'i' then
--@include inspect
    return inspect, 0
  elseif letter == 't' then
--@include raise
    return raise, 2
  end
end

local replies = { false }
local key, at, count = 3, 1, 1
local word, letter, resources, request, fields
while ARGV[at] do
  if ARGV[at] ~= word then
    word = ARGV[at]
    letter, resources = sub(word, 1, 1), tonumber(sub(word, 2)) or 1
    request, fields = requestOf(letter)
  end
  local nextKey = key + 2 * resources
  count = count + 1
  if letter == 'r' or isBelieved() then
    local done, reply = pcall(request, key, nextKey - 1, at + 1)
    if not done then
      reply = type(reply) == 'table' and reply.err or tostring(reply)
    end
    replies[count] = reply
  else
    replies[count] = false
  end
  key, at = nextKey, at + 1 + fields
end

-- Once for the whole call. Should this very command fail, the whole call fails, and with it every answer that needed it.
if floor and floor > floorBefore then
  call('SET', KEYS[2], format('%.0f', floor))
end
replies[1] = epoch or false
return replies
