-- Says of a group that it is new, so that its limits are full and not unknown, and that nobody holds a
-- part of them but those who are known. KEYS: its mark, and the members.
local u, p, call = struct.unpack, struct.pack, redis.call
local v = call('GET', KEYS[1])
if not v or v:byte() ~= HEADED then
  call('SET', KEYS[1], '0')
  return 'done'
end
local lib = membersOf(u, p, call, 0, KEYS[1], KEYS[2])
local h = lib.read(v)
h[1], h[5], h[6], h[8], h[9] = 0, h[5] - h[9], h[2], 0, 0
lib.write(h)
return 'done'
