-- Reads or writes the register of all groups that a store knows. KEYS: the register. ARGV[1]: the time of a test's clock
-- or 0, and the action: 0 checks whether the register lists the group, 1 adds the group if the register exists, 2
-- creates the register if necessary and adds the group. ARGV[2]: the group. The reply is when the register was created,
-- or -1 if there is none, and whether the group was missing.
local u, p, call = struct.unpack, struct.pack, redis.call
local now, act = u('<dd', ARGV[1])
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local text = string.format('%.0f', now)
local group = 'g' .. ARGV[2]
local known = call('HMGET', KEYS[1], 'made', group)
local made, missing = known[1], known[2] and 0 or 1
if not made and act == 2 then
  made = text
  call('HSET', KEYS[1], 'made', made)
end
if not made then
  return p('<dd', -1, 0)
end
if missing == 1 and act > 0 then
  call('HSET', KEYS[1], group, text)
end
return p('<dd', tonumber(made) or -1, missing)
