package cache

import "sync/atomic"

// Stats has counts since New, and the current Bytes and Entries.
type Stats struct {
	Hits, Misses, Stale, Old int64 // results of Get, including the store

	Stored  int64 // entries stored by Put
	Evicted int64 // entries evicted to free space
	Bytes   int64 // approximate bytes in memory
	Entries int64 // approximate number in memory

	Refreshes       int64 // calls of Refresh's function
	RefreshFailures int64 // failed refreshes

	SharedHits    int64 // answers found only in the store
	SharedErrors  int64 // calls of the store that failed or timed out
	SharedSkipped int64 // calls skipped because the store was failing or too many were running
	SharedDamaged int64 // values that were damaged or foreign
	Dropped       int64 // writes that did not fit in the queue or came after Close
}

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

// Stats returns the current counts. It takes no lock, so the numbers may be from slightly different times.
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
