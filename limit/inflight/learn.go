package inflight

import (
	"math/bits"
	"slices"
	"time"
)

// learnt is what answers say of an upstream: how many it gives in a second, and how
// long it takes when nothing is queued.
//
// The rate is the best of the last windows and the base the least of their medians: a
// window without answers does not exist, so silence says nothing of either. The least
// latency of all would sink the bound to a few wherever latencies differ.
type learnt struct {
	rates   [5]int64 // answers in 1,024 s, of the last windows
	nrates  int
	medians [30]time.Duration // of the last windows, the oldest first
	n       int               // of medians
	base    time.Duration     // the least of them
	drained bool              // the first of them is not a window's but a drain's
	began   time.Duration     // the first attempt; 0: there was none yet
	settled bool              // see settles
	heard   int               // answers so far, until then

	from time.Duration // the present window began
	full int           // answers in it that came while the bound was reached
	took histogram     // its answers
	tops int           // windows in a row in which the bound was reached and answers were late
}

// known reports whether there has been a window yet.
func (l *learnt) known() bool { return l.n > 0 }

// slack is how much longer than the base an answer may take.
func (l *learnt) slack() time.Duration { return max(leastSlack, l.base) }

// late reports whether an answer took longer than the base and half of the slack.
func (l *learnt) late(took time.Duration) bool { return took > l.base+l.slack()/2 }

// rate is the best of the last windows.
func (l *learnt) rate() (best int64) {
	for _, r := range l.rates {
		best = max(best, r)
	}
	return best
}

// flight is how many are in flight at the best rate if each takes the base and the
// slack (Little's law), and as many more as chance alone makes of that. In 1,024ths.
func (l *learnt) flight() int64 {
	a := product(l.rate(), l.base+l.slack())
	return a + root(a) + scale
}

// product is rate times d: the one in answers in 1,024 s, the result in 1,024ths.
func product(rate int64, d time.Duration) int64 {
	return portion(uint64(rate), uint64(d), uint64(time.Second))
}

// portion is a*b/c, rounded down, and no more than the largest bound.
func portion(a, b, c uint64) int64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return Most * scale
	}
	q, _ := bits.Div64(hi, lo, c)
	return int64(min(q, Most*scale))
}

// root is the square root of a number in 1,024ths, by Newton's method, in integers.
func root(a int64) int64 {
	n := uint64(a) * scale
	x := uint64(1) << ((bits.Len64(n) + 1) / 2)
	for {
		y := (x + n/max(x, 1)) / 2
		if y >= x {
			return int64(x)
		}
		x = y
	}
}

// over reports whether the present window is over.
func (l *learnt) over(now time.Duration) bool {
	d := now - l.from
	return d >= windowLeast && (l.took.n >= windowAnswers || d >= windowLong && l.took.n >= windowFew || d >= windowMost)
}

// close ends the present window.
func (l *learnt) close(now time.Duration, inFlight int) {
	m, full := l.took.median(), l.full
	l.rates[l.nrates%len(l.rates)] = portion(uint64(l.took.n)*scale, uint64(time.Second), uint64(max(now-l.from, 1)))
	l.nrates++
	l.settles(now, m, inFlight)
	if l.n == len(l.medians) {
		copy(l.medians[:], l.medians[1:])
		l.n--
		l.drained = false
	}
	l.medians[l.n] = m
	l.n++
	l.base = slices.Min(l.medians[:l.n])
	if full*4 > int(l.took.n) && l.late(m) && l.settled {
		l.tops++
	} else {
		l.tops = 0
	}
	l.begin(now)
}

// settles forgets the first medians once there is one that can be believed: as long as
// most answers are still to come, those that have come are the quick ones. Where work
// takes less than a window, the window itself has seen to that.
func (l *learnt) settles(now, median time.Duration, inFlight int) {
	if !l.settled && now-l.began >= settledAfter*median && (median < windowLeast || l.heard >= inFlight) {
		l.n, l.settled = 0, true
	}
}

// begin begins a window.
func (l *learnt) begin(now time.Duration) {
	l.from, l.full = now, 0
	l.took.reset()
}

// rebase forgets the medians for one that was measured without a queue.
func (l *learnt) rebase(now, m time.Duration) {
	l.medians[0], l.n, l.base, l.drained, l.tops = m, 1, m, true, 0
	l.begin(now)
}

// latest is the lower of the last two windows' medians; a drain's own is no window.
func (l *learnt) latest() (least time.Duration, ok bool) {
	from := max(0, l.n-2)
	if l.drained {
		from = max(1, from)
	}
	for i := from; i < l.n; i++ {
		if !ok || l.medians[i] < least {
			least, ok = l.medians[i], true
		}
	}
	return least, ok
}

// lastRate is that of the last window.
func (l *learnt) lastRate() int64 { return l.rates[(l.nrates+len(l.rates)-1)%len(l.rates)] }
