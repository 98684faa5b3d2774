-- Declares a group as new: its limits are full rather than unknown, and only known members hold parts of them. KEYS:
-- the group's mark and the members. ARGV[1]: an instant, or -1. If the store has known the group's state since that
-- instant or earlier, nothing changes.
local u, p, call = struct.unpack, struct.pack, redis.call
local v = call('GET', KEYS[1])
local after = u('<d', ARGV[1])
if v and after >= 0 then
  local since = v:byte() == HEADED and u('<d', v, 2) or tonumber(v) or 0
  if since <= after then
    return 'done'
  end
end
if not v or v:byte() ~= HEADED then
  call('SET', KEYS[1], '0')
  return 'done'
end
local lib = membersOf(u, p, call, 0, KEYS[1], KEYS[2])
local h = lib.read(v)
-- Parts that were out because their holders were unknown were not spent. They are taken out of the falls, the strain
-- and the stale parts. Parts that a process has claimed or got since may have been spent.
local unknown, upto, died = h[19], h[20], h[21]
if h[8] > 0 then
  h[11], unknown, upto, died = 0, h[9], h[2], 0
end
for _, f in ipairs(h[16]) do
  if h[1] ~= 0 and f[1] >= WHOLE and f[2] >= h[18] and f[2] <= upto then
    h[11] = h[14] <= f[2] + 1 and 0 or h[11]
    f[1] = f[1] - unknown
  end
end
for _, s in ipairs(h[17]) do
  if h[1] ~= 0 and s[2] == died then
    s[1] = math.max(0, s[1] - unknown)
  end
end
h[18], h[19], h[20], h[21] = 0, 0, 0, 0
h[1], h[5], h[6], h[8], h[9] = 0, h[5] - h[9], h[2], 0, 0
lib.write(h)
return 'done'
