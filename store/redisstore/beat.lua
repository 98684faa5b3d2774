-- Notes that a client is alive. KEYS: the clients by when they last said so, and the longest time for
-- which anyone has asked. ARGV[1]: the clock of a test or 0, for how long a sign counts, and
-- the client. What a clock that was wrong has stamped far ahead is dropped.
local call = redis.call
local now, keep, pos = struct.unpack('<dd', ARGV[1])
if now == 0 then
  local t = call('TIME')
  now = t[1] * 1000000 + t[2]
end
local function text(n)
  return string.format('%.0f', n)
end
local longest = math.max(keep, tonumber(call('GET', KEYS[2]) or '0'))
local ms = text(math.ceil(longest / 1000) + 60000)
call('ZADD', KEYS[1], text(now), ARGV[1]:sub(pos))
call('ZREMRANGEBYSCORE', KEYS[1], '(' .. text(now + 10000000), '+inf')
if call('ZCARD', KEYS[1]) > 4096 then -- else they go with the key
  call('ZREMRANGEBYSCORE', KEYS[1], '-inf', '(' .. text(now - longest))
end
call('PEXPIRE', KEYS[1], ms)
call('SET', KEYS[2], text(longest), 'PX', ms)
return struct.pack('<d', call('ZCOUNT', KEYS[1], text(now - keep), '+inf'))
