-- What   The end of every script of requests: executes `request` for each of a list of requests of
--        one kind, in order. One that fails (a foreign key in the place of ours, no memory left)
--        fails alone: its reply is the error's text. `quick`, where there is one, is tried first
--        and must not fail: a call that is protected costs about as much as two commands.
-- KEYS   from FIRST_KEY on, equally many for each request
-- ARGV   SHARED that hold for all requests, then FIELDS per request
-- Reply  { the field admitted, per request its reply, a string where it failed }
local count, replies = (#ARGV - SHARED) / FIELDS, { admitted }
local key, step = FIRST_KEY, (#KEYS - FIRST_KEY + 1) / count
for index = 1, count do
  local last, at = key + step - 1, SHARED + (index - 1) * FIELDS + 1
  local reply = quick and quick(key, last, at)
  if not reply then
    local done, answer = pcall(request, key, last, at)
    reply = answer
    if not done then
      reply = type(answer) == 'table' and answer.err or tostring(answer)
    end
  end
  replies[index + 1] = reply
  key = key + step
end
