-- What   One page of the leases that an admitted node stores: of others they would be incomplete.
--        Changes nothing.
-- KEYS   1 {ns}:node
-- ARGV   the cursor (0 to begin with), a pattern of lock keys, what lock keys begin with, what
--        token keys begin with
-- Reply  as JSON, which costs its reader less than a list: [next cursor: '0' at the end, per
--        lease: name, fingerprint of its owner, label, PTTL, highest token as text, how many wait
--        for it]; nil if the node is not admitted. A lease that is there from the first page to
--        the last is on one of them, perhaps on several; others may be.
-- Note   A page is small: the server does nothing else meanwhile.
--@include admission
local standing, isOfRun, counterFloor = admission(redis.call('HGET', KEYS[1], 'admitted'))
if not isOfRun or standing == '-' then
  return false
end
local queue = string.gsub(ARGV[3], 'lock:$', 'queue:')
local floor = tonumber(redis.call('HGET', KEYS[1], 'floor')) or 0
local page = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', '250')
local reply = { page[1] }
for _, key in ipairs(page[2]) do
  local value, left = redis.pcall('GET', key), redis.call('PTTL', key)
  -- Not a key of another kind, a reservation, nor one that ran out since it was listed.
  if type(value) == 'string' and left ~= -2 and string.byte(value) ~= 126 then
    local name = string.sub(key, #ARGV[3] + 1)
    local owner, label = string.match(value, '^([^|]*)|(.*)$')
    local token = redis.pcall('GET', ARGV[4] .. name)
    reply[#reply + 1] = name
    reply[#reply + 1] = string.sub(redis.sha1hex(owner or value), 1, 8)
    -- A value of another form is a key that the lock did not make; it is shown whole.
    reply[#reply + 1] = label or value
    reply[#reply + 1] = left
    reply[#reply + 1] = string.format('%.0f', math.max(type(token) == 'string' and tonumber(token) or floor, counterFloor))
    reply[#reply + 1] = redis.call('ZCARD', queue .. name)
  end
end
return cjson.encode(reply)
