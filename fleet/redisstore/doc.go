// Package redisstore keeps the limits of a fleet in Redis: one server, a primary with replicas and sentinels, or a
// cluster.
//
//	s, err := redisstore.Open("redis://10.0.0.7:6379", redisstore.Options{Password: password})
//
// It needs Redis 7.0 or later, or Valkey 7.2 or later, and uses only features of both. The tests run against Redis.
// Valkey speaks the same protocol.
//
// # A decision
//
// Take is one script and one round trip, regardless of the number of limits, keys and settlements. The server's
// clock gives the time. Scripts compute with integers below 2^53 and store them as binary doubles, so Lua loses no
// digits. The arithmetic equals that of fleet.Memory: a test drives both through the same random histories.
//
// All keys of an upstream begin with {prefix:upstream}, so a cluster places them in one slot. Each key of its
// limits is one hash with a field per limit. Names longer than 256 bytes are replaced by their SHA-256. A refusal
// writes only the response, for a repeat, and the limits that would be counted wrongly later. Keys expire a minute
// or two after the limit is full again and its pauses have ended.
//
// # A server without data
//
// A server that was restarted without its data, flushed or replaced does not know the usage of the limits. It also
// does not know which processes hold parts of the limits for use during an outage. Its limits must not count as
// full. So the key {prefix:upstream} contains the time since when the state of an upstream is known. If the key is
// missing, the next call writes it.
//
// A limit without stored state counts as exhausted at that instant. A bucket is empty, and a rolling limit is spent
// at that moment. The window of a quota is spent until it ends, or has lost the usage that the requesting process
// knows. All parts count as in use until processes show the parts that they hold, which takes a second. A part that
// no process shows counts as in use for its lifetime, five minutes.
//
// A new upstream would also wait: five minutes, and for a monthly quota until the month ends. Init declares an
// upstream new, and the command weir store init calls it. Call it once before the first call. Call it again after
// the server has lost its data if you know that the limits are unused.
//
// # Server settings
//
//   - maxmemory-policy noeviction. An evicted key is a lost limit, while the other keys still indicate that the
//     state is known. A server without free memory responds with an error, which is safe.
//   - appendonly yes, if quotas of a day or longer must survive a restart. With appendfsync everysec, a crash
//     loses the last second. Limits per second or minute need no persistence.
//   - A failover loses the writes that the replica did not receive: at most the rate times its lag, once.
//     min-replicas-to-write 1 and min-replicas-max-lag 1 bound the lag. The new primary's clock may differ. Time
//     does not run backwards for a limit. State with a timestamp more than ten seconds ahead counts as used up now.
//   - Synchronize the clocks of primaries and replicas, for example with ntpd or chrony. A clock that runs ahead
//     by d admits the rate times d, once.
//   - A user with minimal permissions: +evalsha +eval +time +get +set +setrange +pexpire +hmget +hset +hgetall
//     +hdel +del +hello +ping +client +cluster, on the keys {weir:*. With +info +config|get, weir check -connect
//     also checks the server's settings.
//   - No proxy that renames keys or distributes the keys of a script.
//
// # Outages of the server
//
// Every call ends by its context's deadline. A call without a connection fails immediately. After an outage, calls
// use the server again within some milliseconds. The store never sends a failed call later. After a lost response,
// the caller may repeat an ask with Again set. The server executes the copy that arrives first, and answers the
// other with the same response. It remembers responses for at least a minute.
package redisstore
