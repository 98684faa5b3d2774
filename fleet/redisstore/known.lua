-- Returns since when the state of a group is known, in microseconds of the server's clock: 0 if the group was declared
-- new, -1 if the server does not know the group. KEYS: the group's mark. See members.lua.
local v = redis.call('GET', KEYS[1])
if not v then
  return struct.pack('<d', -1)
end
if v:byte() ~= 252 then
  return struct.pack('<d', tonumber(v) or -1)
end
local _, since = struct.unpack('<Bd', v)
return struct.pack('<d', since)
