package breakers

import "sync/atomic"

// Stats count calls to the store.
type Stats struct {
	Loads, Takes, Swaps int64
	Conflicts           int64 // swaps that conflicted with another process
	Failed              int64 // rounds that failed
}

type counts struct{ loads, takes, swaps, conflicts, failed atomic.Int64 }

// Stats returns the counts since New.
func (b *Breakers) Stats() Stats {
	c := &b.counts
	return Stats{c.loads.Load(), c.takes.Load(), c.swaps.Load(), c.conflicts.Load(), c.failed.Load()}
}
