package inflight

import "time"

// Wait is how long a call waits for a slot at most if there has been a queue for so
// long without a break. Once a queue stands nobody is helped by waiting for long, and
// who came last has the most time left: see Stands.
func (b *Bound) Wait(waited time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.stands(waited) {
		return shortWait
	}
	return max(leastWait, 2*b.state.base())
}

// Stands reports whether a queue that has not been empty for so long stands: then the
// newest go first. A queue of calls that go before others does not stand because of a drain: what waited for it is answered soon,
// the oldest in time if they go first.
func (b *Bound) Stands(now, waited time.Duration, before bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before {
		if at := b.heldUp(now); at > 0 && now < at+heldUpSpell {
			return false
		}
	}
	return b.state.stands(waited)
}

// heldUpSpell is how long calls that go before others may take to make up for a drain.
const heldUpSpell = 10 * time.Second

func (s *state) stands(waited time.Duration) bool {
	return !s.starting() && waited > max(standing, s.base())
}

func (s *state) base() time.Duration {
	if !s.learnt.known() {
		return unknown
	}
	return s.learnt.base
}

// Longer is until when a call that came at an instant waits, although its time is up: while
// the upstream stands still and few wait, and while a hasty drain finds out whether there
// is a queue at all. A call that goes before others also waits while more is in flight than the bound: that holds it up,
// and not an overload by calls of its priority.
func (b *Bound) Longer(now, came time.Duration, waiting int, before bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if until := b.patient(now, came, waiting); until > now {
		return until
	}
	d, spell := b.state.drain.last, hastySpell
	if before {
		d, spell = b.heldUp(now), heldUpSpell
	}
	if d > 0 && now < d+spell && now < came+hastySpell {
		return min(d+spell, came+hastySpell)
	}
	return now
}

// heldUp returns when a drain last began, or the bound last fell below what was in flight: nothing goes until enough is
// answered, whatever its priority. It is 0 if neither has happened. The lock is held.
func (b *Bound) heldUp(now time.Duration) time.Duration {
	s := &b.state
	if now-s.above > hastySpell && int64(b.InFlight())*scale > s.bound(now, false) {
		s.above = now
	}
	return max(s.drain.from, s.above)
}

// patient is until when a call waits that would hang at an upstream that stands still. Here
// it may leave without a trace there, and so few as these are done soon when the upstream
// goes on; more would be work for callers who are about to leave. A fixed bound is a
// bulkhead, and keeps nobody for longer. The lock is held.
func (b *Bound) patient(now, came time.Duration, waiting int) time.Duration {
	q, after := &b.state.quiet, max(afterwards, 2*b.state.base())
	if waiting > fewWait {
		q.crowded = now + Held
	}
	_, still := b.still(now)
	switch {
	case now < q.crowded, b.state.config.Limit > 0:
		return now
	case still:
		return now + after
	case q.resumed > came:
		return q.resumed + after
	}
	return now
}

// GaveUp says that a caller has left who waited for a slot. Others are no more patient: nobody is
// kept waiting for longer than usual for a while.
func (b *Bound) GaveUp(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.quiet.crowded = now + Held
}

// Next is when it is worth asking again though nothing was heard: there may be a probe,
// or a slot that was held for too long.
func (b *Bound) Next(now time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.nextProbe()
	if !b.state.learnt.known() {
		at = min(at, now+50*time.Millisecond)
	}
	for _, h := range b.state.held {
		at = min(at, h.until)
	}
	return max(at, now+time.Millisecond)
}

// After is when a call that finds no slot should come again: when those before it have
// gone, at the rate of the answers, or when something will be known of an upstream that
// is silent.
func (b *Bound) After(now time.Duration, waiting int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.state.base()
	if r := b.state.learnt.rate(); r > 0 {
		d += time.Duration(int64(min(waiting, Most)) * scale * int64(time.Second) / r)
	}
	if now-b.state.quiet.heard > leastWait {
		d = max(d, lastProbe)
	}
	return min(max(d, shortWait), Held)
}
