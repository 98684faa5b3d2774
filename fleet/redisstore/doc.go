// Package redisstore keeps the limits of a fleet in Redis: one server, a primary with replicas and
// sentinels, or a cluster.
//
//	s, err := redisstore.Open("redis://10.0.0.7:6379", redisstore.Options{Password: password})
//
// It needs Redis 7.0 or later, or Valkey 7.2 or later, and nothing of either that the other
// lacks. The tests run against Redis; Valkey speaks the same protocol.
//
// # A decision
//
// Take is one script and one round trip, whatever the number of limits, keys and settlements. The time
// is the server's. Numbers are whole, below 2^53, and kept as doubles in binary, so that none of their
// digits is lost in Lua. The arithmetic is that of fleet.Memory; a test drives both through
// the same random histories.
//
// All keys of an upstream begin with {prefix:upstream} and so are in one slot of a cluster. Of
// each key of its limits there is one hash with a field for each limit. What is longer than 256 bytes
// stands in keys as its SHA-256. A refusal writes the answer only, for a repeat, and of the
// limits what would otherwise be counted wrongly later. Keys expire a minute or two after
// everything is there again and pauses are over.
//
// # A server that knows nothing
//
// A server that was restarted without its data, flushed, or replaced has forgotten what was
// used, and which processes hold parts of the limits for when it is away. It must not be taken for full. So the
// key {prefix:upstream} says since when the state of an upstream is known. If it is missing it is written, and a
// limit that is not stored counts as used up at that instant: a bucket is empty, a rolling limit has let
// everything through in that moment, the window of a quota is spent until it ends, or has lost as much as the
// process that asks knows to have gone. And all of the supply counts as out until processes show the
// parts that they hold, which takes them a second; what nobody shows is out for as long as a part lives, five minutes.
//
// An upstream that is new would therefore wait too: five minutes, and for a quota
// of a month for the rest of the month. Init says that it is new; the command weir store
// init does that. Do it once, before the first call, and again after the server has lost its data if you
// know that nothing is used up.
//
// # What to set on the server
//
//   - maxmemory-policy noeviction. A key that is evicted is a limit forgotten, and the other keys
//     still say that the state is known. Without memory the server answers with an error, which is safe.
//   - appendonly yes, if quotas of days and longer must survive a restart; appendfsync everysec loses
//     the last second. Limits of seconds and minutes need nothing on disk.
//   - With replicas, a failover loses what the replica had not heard yet: at most the rate times its
//     lag, once. min-replicas-to-write 1 and min-replicas-max-lag 1 bound that. The clock of
//     the new primary may be another: time does not run backwards for it, and what a clock had
//     stamped more than ten seconds ahead is taken for used up now.
//   - The clocks of primaries and replicas should agree, as ntpd and chrony see to. A clock that runs
//     ahead by d lets through the rate times d, once.
//   - A user that may do no more than it must: +evalsha +eval +time +get +set +setrange +pexpire +hmget +hset
//     +hgetall +hdel +del +hello +ping +client +cluster, on the keys {weir:*. With +info +config|get, weir check -connect sees
//     how the server is set, too.
//   - No proxy that renames keys or spreads the keys of a script.
//
// # When the server is away
//
// Every call ends by its context's deadline. A call while there is no connection
// fails at once, and a server that has returned is used within some milliseconds. Nothing that
// failed is sent later. An ask whose answer was lost may be repeated with Again set: whichever of
// the two arrives first is executed, the other gets its answer. Answers are remembered for a minute
// at least.
package redisstore
