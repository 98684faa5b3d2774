package breakers

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// offer proposes the change that is due in a generation without events.
func (b *Breakers) offer(now time.Duration, t *seat, e *entry, s *breaker.State) (c change, ok bool) {
	lent := b.mine(e) && !s.Probing
	switch {
	case e.Held && now < t.until:
		return b.refresh(now, t, e, s)
	case e.Phase == breaker.Closed:
		return c, false
	case lent && b.leaving, lent && now >= s.Lease && now-t.wanted > fresh:
		return b.giveBack(now, t, e, s), true
	case lent && now >= s.Lease, !lent && now >= t.tries() && !b.leaving:
		return b.take(now, t, e, s), true
	}
	return c, false
}

// refreshEvery is how often a process writes a forced state again, so that it does not expire while a process uses
// it.
const refreshEvery = 24 * time.Hour

func (b *Breakers) refresh(now time.Duration, t *seat, e *entry, s *breaker.State) (c change, ok bool) {
	at := now + b.lo
	if at-e.At < refreshEvery {
		return c, false
	}
	next := *e
	next.At = at
	return change{t, next, s.Gen, false}, true
}

// take proposes that this process probes.
func (b *Breakers) take(now time.Duration, t *seat, e *entry, s *breaker.State) change {
	next := b.entry(now, t.page, s)
	next.Phase, next.Why, next.Held, next.Good = breaker.HalfOpen, breaker.OpenTimeOver, false, max(e.Good, s.Successes)
	if e.Phase == breaker.HalfOpen {
		next.Since = e.Since
	} else {
		next.Since, next.Good = next.At, 0
	}
	next.Holder, next.Until = b.id, next.At+grace+t.b.Config().ProbeTimeout
	return change{t, next, s.Gen, true}
}

// giveBack proposes that another process probes.
func (b *Breakers) giveBack(now time.Duration, t *seat, e *entry, s *breaker.State) change {
	next := *e
	next.At = now + b.lo
	next.Gen, next.Holder, next.Until, next.Good = max(t.page.Gen+1, next.At.Microseconds()), "", next.At, s.Successes
	return change{t, next, s.Gen, true}
}
