package inflight

import "time"

// quiet tracks the time without responses.
type quiet struct {
	heard, probed time.Duration
	resumed       time.Duration // the first response after a stall; 0 means never
	stood         time.Duration // the length of that stall
	crowded       time.Duration // until when a crowd, or callers that left, are remembered
	gap           time.Duration
	probes        uint64
}

// still reports whether the upstream stalls, and for how long: no response arrives although one is overdue. The lock
// must be held.
func (b *Bound) still(now time.Duration) (time.Duration, bool) {
	since, waits := b.unheard(1)
	d := now - max(since, b.state.quiet.heard)
	return d, waits && d > b.state.base()+b.state.learnt.slack()
}

// hears records that a response has arrived. The lock must be held. The earlier attempts must not be marked as
// answered yet.
func (b *Bound) hears(now time.Duration) {
	q := &b.state.quiet
	if d, ok := b.still(now); ok {
		q.resumed, q.stood = now, d
	}
	q.heard = max(q.heard, now)
}

// stoodBy reports whether an attempt took so long because the upstream stalled meanwhile. The lock must be held.
func (b *Bound) stoodBy(sent, now time.Duration) bool {
	q := &b.state.quiet
	return sent < q.resumed && now-sent < 2*q.stood
}

// probes reports whether one attempt may be sent although every slot is taken, because no response has arrived for
// long: the connections for the responses may be dead. The lock must be held.
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

// nextProbe returns when the next probe may be sent if no response arrives before. The lock must be held.
func (b *Bound) nextProbe() time.Duration {
	q := &b.state.quiet
	gap := q.gap
	if q.probed <= q.heard {
		gap = firstProbe
	}
	return b.silent() + gap
}

// silent returns since when no awaited response has arrived. Attempts older than the newest answered one are only
// slow and do not count. The lock must be held.
func (b *Bound) silent() time.Duration {
	q := &b.state.quiet
	since, _ := b.unheard(1)
	return max(since, q.heard, q.probed)
}
