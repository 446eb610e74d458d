-- What   Part of the scripts that need the highest token that may have been stored for one resource:
--        its counter, or the node's floor where it has none.
-- KEYS   1 {ns}:node, and the token key each function is called with
-- ARGV   none of its own
-- Reply  none of its own
--@include if-admitted
local floorBefore = floor

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

local function storedAt(key)
  return math.max(counterAt(key) or floor, counterFloor)
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

-- Before the replies: the floor rises once for the whole call. Should this very command fail, the
-- whole call fails, and with it every answer that needed it.
local function storeFloor()
  if floor > floorBefore then
    call('HSET', KEYS[1], 'floor', format('%.0f', floor))
  end
end
