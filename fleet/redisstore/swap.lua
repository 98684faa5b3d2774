-- Writes a record if it has the version that the caller has seen, 0 being none.
--
-- KEYS: the record. ARGV[1]: the clock of a test or 0, the version, for how many microseconds the record
-- is kept, and the rest of it. A record is its version, until when it is kept, for how long that
-- was, and its value; records.go reads it. A version is not used again after a record was forgotten.
-- What is no record is written over.
local u, p = struct.unpack, struct.pack
local now, version, keep, pos = u('<ddd', ARGV[1])
if now == 0 then
  local t = redis.call('TIME')
  now = t[1] * 1000000 + t[2]
end
local old = redis.pcall('GET', KEYS[1])
local has, till = 0, 0
if type(old) == 'string' and #old >= 24 then
  has, till = u('<dd', old)
  if not (has >= 1 and has < 2 ^ 53 and now <= till) then
    has, old = 0, nil
  end
else
  old = nil
end
if has ~= version then
  return p('<B', 0) .. (old or '')
end
local new = p('<dd', math.max(version + 1, now), now + keep) .. ARGV[1]:sub(pos)
redis.call('SET', KEYS[1], new, 'PX', string.format('%.0f', math.ceil(keep / 1000) + 60000))
return p('<B', 1) .. new
