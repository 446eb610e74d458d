-- What   Raise the counter of one resource to at least a token, whoever owns it. 'holder' also takes the lock away and tells who waits for it.
-- KEYS   lock, token
-- ARGV   token, 'holder' or 'nothing'
-- Reply  { the token now stored, the removed lock value or '' }
local function raise(first, _, at)
  local token = math.max(tonumber(ARGV[at]), storedAt(KEYS[first + 1]))
  local removed = false
  if ARGV[at + 1] == 'holder' then
    removed = call('GET', KEYS[first])
  end
  store(KEYS[first + 1], token)
  if removed then
    call('DEL', KEYS[first])
    tell(KEYS[first], token)
  end
  return { token, removed or '' }
end
