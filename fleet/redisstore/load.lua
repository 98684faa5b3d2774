-- Reads records. KEYS: the group's mark, which tells a cluster where to ask, and the records.
-- ARGV[1]: the clock of a test or 0. The answer is the clock, and each record with its length
-- before it. What swap.lua has not written is no record.
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
