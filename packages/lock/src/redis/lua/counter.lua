-- What   Part of the scripts that need the highest token that may have been stored for one
--        resource.
-- KEYS   none of its own: the token key it is called with
-- ARGV   none of its own
-- Reply  none of its own
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
