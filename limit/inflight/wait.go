package inflight

import "time"

// Wait returns how long a call may wait for a slot if there has been a queue for waited without a break. In a
// standing queue a long wait helps no caller, and the newest call has the most time left: see Stands. With before, a
// call may wait longer: the calls of lower priority make room.
func (b *Bound) Wait(now, waited time.Duration, before bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.state
	d := max(leastWait, 2*s.base())
	switch {
	case s.stands(now, waited, before):
		return shortWait
	case before && s.callersStay(now):
		return max(d, hastySpell)
	}
	return d
}

// Stands reports whether a queue that has not been empty for waited is standing: then the newest calls go first.
// before means that calls of lower priority wait. A queue of such calls is not standing because of a drain: its calls
// are served soon, and the oldest are in time if they go first.
func (b *Bound) Stands(now, waited time.Duration, before bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before {
		if at := b.heldUp(now); at > 0 && now < at+heldUpSpell {
			return false
		}
	}
	return b.state.stands(now, waited, before)
}

// heldUpSpell is how long such calls may take to recover from a drain.
const heldUpSpell = 10 * time.Second

// stands reports whether a queue is standing. Calls before others that need 80% of an upstream with 3 workers often find
// a queue for more than half a second, and yet each could have its turn. So a queue of such calls is standing only if
// callers have left lately, or a crowd waits.
func (s *state) stands(now, waited time.Duration, before bool) bool {
	return !s.starting() && waited > max(standing, s.base()) && !(before && s.callersStay(now))
}

// callersStay reports whether no caller has left lately, and no crowd has waited.
func (s *state) callersStay(now time.Duration) bool { return now >= s.quiet.crowded && now >= s.bad }

func (s *state) base() time.Duration {
	if !s.learnt.known() {
		return unknown
	}
	return s.learnt.base
}

// Longer returns until when a call that came at an instant waits although its time is up. It waits while the upstream
// stalls and few calls wait, and while a hasty drain finds out whether there is a queue at all. With before, it also
// waits while more attempts are in flight than the bound, which is not an overload by calls of its priority.
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

// heldUp returns when a drain last began, or the bound last fell below the attempts in flight: no call proceeds until
// enough responses arrive, whatever its priority. It is 0 if neither has happened. The lock must be held.
func (b *Bound) heldUp(now time.Duration) time.Duration {
	s := &b.state
	if now-s.above > hastySpell && int64(b.InFlight())*scale > s.bound(now, false) {
		s.above = now
	}
	return max(s.drain.from, s.above)
}

// patient returns until when a call waits instead of being sent to a stalled upstream. A waiting call can leave
// without work for the upstream, and few calls are served soon after the stall. More would be work for callers that
// are about to leave. A fixed bound is a bulkhead, and extends no wait. The lock must be held.
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

// GaveUp records that a caller left while it waited for a slot. Other callers are probably no more patient, so no
// wait is extended for a while.
func (b *Bound) GaveUp(now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.quiet.crowded = now + Held
}

// Next returns when to ask again although no response has arrived: a probe may be allowed, or a slot may expire.
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

// After returns when a call that finds no slot should ask again: when the calls before it have proceeded, at the
// rate of responses, or when a silent upstream has been probed.
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
