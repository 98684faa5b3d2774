package retry

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

const (
	// holdAfter is the number of consecutive failed attempts after which retries are held back. If every other attempt fails, one
	// series in a thousand is that long.
	holdAfter = 10

	// firstGap and longestGap bound the time after a failure in which no retry is sent. Each retry that is sent lengthens the
	// next gap by half.
	firstGap   = 100 * time.Millisecond
	longestGap = 10 * time.Second
)

// A Holdoff reduces retries while no attempt of an upstream succeeds. After ten consecutive failures, a due retry is sent only if
// no attempt was sent and failed within the current gap. That retry finds out whether the upstream works again. The other retries
// would probably fail: they wait once more, as if they had been sent. The first success ends this.
//
// For example, forty calls during an outage of two seconds make two attempts each. A client's usual retries make three and lose a
// quarter of the calls. A Holdoff does not hold back first attempts. There is at most one per call, and they also show that the
// upstream works again.
//
// The zero Holdoff holds nothing back. A Holdoff is safe for concurrent use, takes no lock, and costs a successful attempt one
// load.
type Holdoff struct {
	row  atomic.Int64 // consecutive failed attempts
	next atomic.Int64 // no retry is sent before this instant, while row is long enough
	gap  atomic.Int64 // 0 until the row is long enough
}

// Heard records the result of an attempt. A call that the upstream rejects counts as answered. A call whose caller left does not
// count.
func (h *Holdoff) Heard(now time.Duration, o *outcome.Outcome) {
	switch {
	case o.Class == outcome.Canceled, o.Class == outcome.Rejected && o.Unsent:
	case o.Class == outcome.OK, o.Class == outcome.Rejected:
		if h.row.Load() != 0 {
			h.gap.Store(0)
			h.row.Store(0)
		}
	default:
		if h.row.Add(1) >= holdAfter {
			h.gap.CompareAndSwap(0, int64(firstGap))
			h.until(int64(now) + h.gap.Load())
		}
	}
}

// Allows reports whether a retry may be sent now. It returns true for one retry per gap, which must then be sent.
func (h *Holdoff) Allows(now time.Duration) bool {
	if !h.Holds() {
		return true
	}
	next, gap := h.next.Load(), h.gap.Load()
	if int64(now) < next || !h.next.CompareAndSwap(next, int64(now)+gap) {
		return false
	}
	h.gap.CompareAndSwap(gap, min(gap+gap/2, int64(longestGap)))
	return true
}

// Holds reports whether retries are held back because too many consecutive attempts failed.
func (h *Holdoff) Holds() bool { return h.row.Load() >= holdAfter }

// until moves the instant of the next retry to at, if that is later.
func (h *Holdoff) until(at int64) {
	for {
		old := h.next.Load()
		if old >= at || h.next.CompareAndSwap(old, at) {
			return
		}
	}
}
