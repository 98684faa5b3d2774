package inflight

import "time"

// quiet is for how long nothing has been heard.
type quiet struct {
	heard, probed time.Duration
	resumed       time.Duration // something was heard after the upstream had stood still; 0: never
	stood         time.Duration // for how long it had
	crowded       time.Duration // until when a crowd is remembered, or callers who left
	gap           time.Duration
	probes        uint64
}

// still reports whether the upstream stands still, and for how long: nothing is heard that
// should have been answered by now. The lock is held.
func (b *Bound) still(now time.Duration) (time.Duration, bool) {
	since, waits := b.unheard(1)
	d := now - max(since, b.state.quiet.heard)
	return d, waits && d > b.state.base()+b.state.learnt.slack()
}

// hears notes that something is heard. The lock is held, and what was sent before is not
// known to be answered yet.
func (b *Bound) hears(now time.Duration) {
	q := &b.state.quiet
	if d, ok := b.still(now); ok {
		q.resumed, q.stood = now, d
	}
	q.heard = max(q.heard, now)
}

// stoodBy reports whether an attempt took so long because the upstream stood still
// meanwhile. The lock is held.
func (b *Bound) stoodBy(sent, now time.Duration) bool {
	q := &b.state.quiet
	return sent < q.resumed && now-sent < 2*q.stood
}

// probes reports whether one attempt goes though every slot is taken, because nothing
// has been heard for long: connections may be dead on which answers would come. The
// lock is held.
func (b *Bound) probes(now time.Duration) bool {
	q := &b.state.quiet
	if q.probed <= q.heard {
		q.gap = firstProbe
	}
	if now-b.silent() < q.gap {
		return false
	}
	q.probed, q.gap = now, min(lastProbe, q.gap+q.gap/2)
	q.probes++
	return true
}

// nextProbe is when the next probe may go if nothing is heard before. The lock is held.
func (b *Bound) nextProbe() time.Duration {
	q := &b.state.quiet
	gap := q.gap
	if q.probed <= q.heard {
		gap = firstProbe
	}
	return b.silent() + gap
}

// silent is since when nothing is heard that has been waited for. What is older than
// the newest answer is only slow. The lock is held.
func (b *Bound) silent() time.Duration {
	q := &b.state.quiet
	since, _ := b.unheard(1)
	return max(since, q.heard, q.probed)
}
