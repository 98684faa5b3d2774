-- Reads records. KEYS: the group's mark, so that a cluster routes the script to the group's node, and the records.
-- ARGV[1]: the time of a test's clock or 0. The reply is the time, then each record after its length. A value that
-- swap.lua has not written counts as missing.
local u, p = struct.unpack, struct.pack
local now = u('<d', ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local all = {p('<d', now)}
for i = 2, #KEYS do
  local v = redis.pcall('GET', KEYS[i])
  if type(v) ~= 'string' or #v < 24 then
    v = ''
  else
    local version, till = u('<dd', v)
    if not (version >= 1 and version < 2 ^ 53 and now <= till) then
      v = ''
    end
  end
  all[i] = p('<I4', #v) .. v
end
return table.concat(all)
