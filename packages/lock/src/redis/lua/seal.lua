-- What   Store a token where, and only where, all resources still have this owner and nothing above
--        the token is stored for them. A seal that did not check ownership would let two leases end
--        up with one token (T2). While an owner has a resource no other request raises its counter,
--        so a higher one means that the token was chosen without this node's present grant (one
--        that came late or twice, a forced raise): that token must not win.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   per request: beginning of the lock value (owner|), token
-- Reply  as each-request.lua says, per request sealed: 1 | lost: 0
--@include counter
--@include each-request

local function request(first, last, at)
  local mine, token = ARGV[at], tonumber(ARGV[at + 1])
  for key = first, last, 2 do
    local value = call('GET', KEYS[key])
    if not value or sub(value, 1, #mine) ~= mine or storedAt(KEYS[key + 1]) > token then
      return 0
    end
  end
  for key = first, last, 2 do
    store(KEYS[key + 1], token)
  end
  return 1
end

local replies = eachRequest(admitted, 2, 0, 2, request)
storeFloor()
return replies
