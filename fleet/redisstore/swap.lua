-- Writes a record if its version is the one that the caller has read; version 0 means that there is none.
--
-- KEYS: the record. ARGV[1]: the time of a test's clock or 0, the version, for how many microseconds to keep the
-- record, and the rest of the record. A record consists of its version, when it expires, for how long it was to be
-- kept, and its value. records.go reads it. A version is not used again after the record has expired. A value that
-- is not a record is overwritten.
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
