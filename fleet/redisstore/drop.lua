-- Drops the keys that hold what no script of ours wrote.
return tostring(redis.call('DEL', unpack(KEYS)))
