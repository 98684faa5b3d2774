-- Says of a group that it is new, so that its limits are full and not unknown. KEYS: its mark.
redis.call('SET', KEYS[1], '0')
return 'done'
