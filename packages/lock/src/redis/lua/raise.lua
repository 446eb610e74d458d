-- What   Raise the counter of a resource to at least a token: whoever holds it, or together with the
--        removal of one holder, and then the lock is handed over to the first in the queue. Where
--        another one has it, nothing is done: it came after the one that is meant (L2).
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   per request: token, 'whoever' or the fingerprint of the holder to be removed ('': none)
-- Reply  as each-request.lua says, per request { the token now stored, the removed lock value or ''
--        } | another has it: 0
--@include counter
--@include queue
--@include each-request

local function request(first, _, at)
  local removed = ARGV[at + 1] ~= 'whoever' and call('GET', KEYS[first])
  -- A reservation has no holder.
  removed = removed and string.byte(removed) ~= 126 and removed
  if removed and sub(redis.sha1hex(string.match(removed, '^[^|]*')), 1, 8) ~= ARGV[at + 1] then
    return 0
  end
  local token = math.max(tonumber(ARGV[at]), storedAt(KEYS[first + 1]))
  store(KEYS[first + 1], token)
  if removed then
    call('DEL', KEYS[first])
    handOver(KEYS[first])
  end
  return { token, removed or '' }
end

local replies = eachRequest(admitted, 2, 0, 2, request)
storeFloor()
return replies
