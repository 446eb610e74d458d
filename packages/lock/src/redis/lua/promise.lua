-- What   First of the two rounds in which the members agree on the next generation: this node
--        promises to accept nothing under a lower ballot, and tells what it has accepted.
-- KEYS   1 {ns}:node
-- ARGV   the field admitted as it was noted, ballot
-- Reply  { '1', accepted ballot or '0', accepted members or '' } | { '0', the ballot it has
--        promised } if that is not lower, or if the field has changed: a changer that noted it
--        before another member was rebuilt from this node may count a promise that the rebuilt one
--        has forgotten
--@include admission
local record = redis.call('HMGET', KEYS[1], 'admitted', 'floor', 'promised', 'accepted', 'acceptedMembers')
local _, isOfRun = admission(record[1])
local promised = tonumber(record[3] or '') or 0
if not isOfRun or not record[2] or record[1] ~= ARGV[1] or promised >= tonumber(ARGV[2]) then
  return { '0', string.format('%.0f', promised) }
end
redis.call('HSET', KEYS[1], 'promised', ARGV[2])
return { '1', record[4] or '0', record[5] or '' }
