package retry

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

const (
	// holdAfter is how many attempts in a row have to fail before retries are held
	// back. Where every other attempt fails, that is one row in a thousand.
	holdAfter = 10

	// firstGap and longestGap are how long after a failure no retry is sent; each that
	// is sent makes the next gap half as long again.
	firstGap   = 100 * time.Millisecond
	longestGap = 10 * time.Second
)

// A Holdoff keeps retries from an upstream at which nothing succeeds. When ten
// attempts in a row have failed, a retry whose time has come is sent only if nothing
// was sent and failed lately, to see whether the upstream is back; all others would
// fail, too. They wait once more, as though they had been sent. The first attempt that
// succeeds lets all go.
//
// So forty calls that come while an upstream is away for two seconds make two attempts
// each, where a client's own retries make three and lose a quarter of the calls. It
// holds back retries only: first attempts, of which there are no more than calls, tell
// as well as retries that the upstream is back.
//
// The zero Holdoff holds nothing back. It is safe for concurrent use, takes no lock, and
// costs an attempt that succeeds one load.
type Holdoff struct {
	row  atomic.Int64 // attempts in a row that failed
	next atomic.Int64 // the instant before which no retry is sent, while row is long enough
	gap  atomic.Int64 // 0 until the row is long enough
}

// Heard takes note of how an attempt ended. A call that the upstream rejects has been
// answered; one whose caller left says nothing.
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

// Allows reports whether a retry may be sent now. The one that may, of those that ask
// in a gap, has to be sent.
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

// Holds reports whether so many attempts in a row have failed that retries are held back.
func (h *Holdoff) Holds() bool { return h.row.Load() >= holdAfter }

// until puts the instant off.
func (h *Holdoff) until(at int64) {
	for {
		old := h.next.Load()
		if old >= at || h.next.CompareAndSwap(old, at) {
			return
		}
	}
}
