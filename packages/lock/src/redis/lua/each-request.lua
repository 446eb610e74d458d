-- What   Part of every script of a verb: executes `request` for each of a list of requests, in order.
--        One that fails (a foreign key in the place of ours, no memory left) fails alone: its reply
--        is the error's text. `quick`, where there is one, is tried first and must not fail, but
--        for what concerns all requests: a call that is protected costs about as much as two commands.
-- KEYS   from firstKey on, equally many for each request
-- ARGV   `shared` that hold for all requests, then `fields` per request
-- Reply  { the field admitted, per request its reply, a string where it failed }
--@include start
local function eachRequest(admitted, firstKey, shared, fields, request, quick)
  local count, replies = (#ARGV - shared) / fields, { admitted }
  local key, step = firstKey, (#KEYS - firstKey + 1) / count
  for index = 1, count do
    local last, at = key + step - 1, shared + (index - 1) * fields + 1
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
  return replies
end
