package inflight

import (
	"math/bits"
	"slices"
	"time"
)

// A learnt contains what responses show about an upstream: their rate, and their latency without a queue.
//
// The rate is the highest of the last windows, and the base the lowest of their medians. A window without responses
// is ignored, so silence changes neither. The lowest latency of all would reduce the bound to a few attempts if
// latencies vary.
type learnt struct {
	rates   [5]int64 // responses per 1,024 s in the last windows
	nrates  int
	medians [30]time.Duration // of the last windows, oldest first
	n       int               // number of medians
	base    time.Duration     // the lowest median
	drained bool              // the first median is from a drain, not from a window
	began   time.Duration     // the first attempt; 0 if there was none
	settled bool              // see settles
	heard   int               // number of responses until it was settled
	fast    int               // heard at the last response of these that took no longer than the base
	sentBy  int               // number of attempts until the window with the base ended

	from time.Duration // the beginning of the present window
	full int           // responses in it that arrived while the bound was reached
	took histogram     // their latencies
	tops int           // windows in a row in which the bound was reached and responses were late
}

// known reports whether a window has ended.
func (l *learnt) known() bool { return l.n > 0 }

// slack returns how much longer than the base a response may take.
func (l *learnt) slack() time.Duration { return max(leastSlack, l.base) }

// late reports whether a response took longer than the base and half of the slack.
func (l *learnt) late(took time.Duration) bool { return took > l.base+l.slack()/2 }

// rate returns the highest rate of the last windows.
func (l *learnt) rate() (best int64) {
	for _, r := range l.rates {
		best = max(best, r)
	}
	return best
}

// flight returns the number of attempts in flight at the highest rate if each takes the base and the slack (Little's
// law), and the square root of that for random variation. In 1,024ths.
func (l *learnt) flight() int64 {
	a := product(l.rate(), l.base+l.slack())
	return a + root(a) + scale
}

// product returns rate times d. rate is in responses per 1,024 s, the result in 1,024ths.
func product(rate int64, d time.Duration) int64 {
	return portion(uint64(rate), uint64(d), uint64(time.Second))
}

// portion returns a*b/c, rounded down, and at most the largest bound.
func portion(a, b, c uint64) int64 {
	hi, lo := bits.Mul64(a, b)
	if hi >= c {
		return Most * scale
	}
	q, _ := bits.Div64(hi, lo, c)
	return int64(min(q, Most*scale))
}

// root returns the square root of a number in 1,024ths, by Newton's method, in integers.
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
	if m == l.base {
		l.sentBy = l.heard + inFlight
	}
	if full*4 > int(l.took.n) && l.late(m) && l.settled {
		l.tops++
	} else {
		l.tops = 0
	}
	l.begin(now)
}

// settles discards the first medians once a median is reliable. While most responses are still to come, the ones that
// have arrived are the fast ones. If work takes less than a window, the window itself ensures that.
//
// In an overload from the start, latencies grow with the queue, and no median is ever reliable. But then no response is
// as fast as the base any more. Without a queue, as many attempts as were sent until the base was measured would bring
// as many fast responses again: half of a window, which is 5 to 10 or more. The medians then remain, because the
// lowest was measured with the shortest queue.
func (l *learnt) settles(now, median time.Duration, inFlight int) {
	switch {
	case l.settled:
	case now-l.began >= settledAfter*median && (median < windowLeast || l.heard >= inFlight):
		l.n, l.settled = 0, true
	case l.known() && l.heard-l.fast >= l.sentBy:
		l.settled = true
	}
}

// begin starts a window.
func (l *learnt) begin(now time.Duration) {
	l.from, l.full = now, 0
	l.took.reset()
}

// rebase replaces the medians by a median that was measured without a queue.
func (l *learnt) rebase(now, m time.Duration) {
	l.medians[0], l.n, l.base, l.drained, l.tops = m, 1, m, true, 0
	l.begin(now)
}

// latest returns the lower median of the last two windows. The median of a drain does not count.
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

// lastRate returns the rate of the last window.
func (l *learnt) lastRate() int64 { return l.rates[(l.nrates+len(l.rates)-1)%len(l.rates)] }
