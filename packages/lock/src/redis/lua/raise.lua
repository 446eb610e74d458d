-- What   Raise the counter of a resource to at least a token, whoever owns it. 'holder' also
--        removes the lock and hands it over to the first in the queue.
-- KEYS   1 {ns}:node, then per resource: lock, token
-- ARGV   per request: token, 'holder' or 'nothing'
-- Reply  as each-request.lua says, per request { the token now stored, the removed lock value or ''
--        }
--@include counter
--@include queue
--@include each-request

local function request(first, _, at)
  local token = math.max(tonumber(ARGV[at]), storedAt(KEYS[first + 1]))
  local removed = false
  if ARGV[at + 1] == 'holder' then
    removed = call('GET', KEYS[first])
    -- A reservation has no holder.
    removed = removed and string.byte(removed) ~= 126 and removed
  end
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
