-- Deletes keys whose values none of these scripts wrote.
return tostring(redis.call('DEL', unpack(KEYS)))
