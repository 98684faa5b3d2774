package cache

import "sync/atomic"

// Stats are sums since the Cache was made, except Bytes and Entries.
type Stats struct {
	Hits, Misses, Stale, Old int64 // what Get found, the store included

	Stored  int64 // entries that Put kept
	Evicted int64 // that had to make room
	Bytes   int64 // in memory now, about
	Entries int64 // in memory now, about

	Refreshes       int64 // calls that Refresh has made
	RefreshFailures int64 // of them, those that failed

	SharedHits    int64 // answers that the store had and memory had not
	SharedErrors  int64 // calls of the store that failed or took too long
	SharedSkipped int64 // that were not made, because it was failing or too many were under way
	SharedDamaged int64 // values that were damaged, or none of ours
	Dropped       int64 // writes for which the queue had no room, or that came after Close
}

// counters are Stats as they grow.
type counters struct {
	hits, misses, stale, old   atomic.Int64
	stored                     atomic.Int64
	refreshes, refreshFailures atomic.Int64

	sharedHits, sharedErrors, sharedSkipped, sharedDamaged, dropped atomic.Int64
}

func (n *counters) found(s State) {
	switch s {
	case Hit:
		n.hits.Add(1)
	case Stale:
		n.stale.Add(1)
	case Old:
		n.old.Add(1)
	default:
		n.misses.Add(1)
	}
}

// Stats takes no lock, so its numbers may be of slightly different moments.
func (c *Cache) Stats() Stats {
	n := &c.counters
	return Stats{
		Hits: n.hits.Load(), Misses: n.misses.Load(), Stale: n.stale.Load(), Old: n.old.Load(),
		Stored: n.stored.Load(), Evicted: c.memory.evicted.Load(), Bytes: c.memory.bytes.Load(), Entries: int64(c.memory.cache.EstimatedSize()),
		Refreshes: n.refreshes.Load(), RefreshFailures: n.refreshFailures.Load(),
		SharedHits: n.sharedHits.Load(), SharedErrors: n.sharedErrors.Load(), SharedSkipped: n.sharedSkipped.Load(),
		SharedDamaged: n.sharedDamaged.Load(), Dropped: n.dropped.Load(),
	}
}
