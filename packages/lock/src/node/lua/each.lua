-- What   The end of every script of requests: executes `request` for each of a list of requests of one kind, in order. One that fails (a foreign key in the place of
--        ours, no memory left) fails alone: its reply is the error's text.
-- KEYS   from FIRST_KEY on, KEYS_EACH per resource
-- ARGV   1 the number of resources of each request, then FIELDS per request
-- Reply  { epoch, or '' when the memory is not believed; per request its reply, nil where it is not believed, a string where it failed }
local replies, count = { epoch }, 1
local key, step = FIRST_KEY, KEYS_EACH * ARGV[1]
for at = 2, #ARGV, FIELDS do
  count = count + 1
  if epoch == '' then
    replies[count] = false
  else
    local done, reply = pcall(request, key, key + step - 1, at)
    if not done then
      reply = type(reply) == 'table' and reply.err or tostring(reply)
    end
    replies[count] = reply
  end
  key = key + step
end
