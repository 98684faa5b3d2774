-- Since when the state of a group is known, by the server's clock in microseconds: 0 if the group was
-- said to be new, and -1 if the server knows nothing of it. KEYS: its mark. See members.lua.
local v = redis.call('GET', KEYS[1])
if not v then
  return struct.pack('<d', -1)
end
if v:byte() ~= 252 then
  return struct.pack('<d', tonumber(v) or -1)
end
local _, since = struct.unpack('<Bd', v)
return struct.pack('<d', since)
