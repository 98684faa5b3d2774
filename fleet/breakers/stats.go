package breakers

import "sync/atomic"

// Stats count what became of the calls of the store.
type Stats struct {
	Loads, Takes, Swaps int64
	Conflicts           int64 // swaps that another process was faster with
	Failed              int64 // rounds that were broken off
}

type counts struct{ loads, takes, swaps, conflicts, failed atomic.Int64 }

// Stats are the figures since New.
func (b *Breakers) Stats() Stats {
	c := &b.counts
	return Stats{c.loads.Load(), c.takes.Load(), c.swaps.Load(), c.conflicts.Load(), c.failed.Load()}
}
