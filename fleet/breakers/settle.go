package breakers

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// settle compares a breaker with the fleet's entry. Either the breaker follows, or settle returns a change to
// propose.
func (b *Breakers) settle(now time.Duration, t *seat) (c change, ok bool) {
	e := t.page.of(t.name, now+b.lo)
	if t.full && e.Gen <= t.gen && !e.matters() {
		t.b.Trip(now, t.hint, breaker.FleetTripped)
	}
	t.full = false
	s := t.b.State()
	if t.b.Config().Off && !s.Held && !e.Held { // the fleet does not affect it
		t.own, t.gen, t.failed = s.Gen, 0, 0
		return c, false
	}
	if s.Gen != t.own {
		return b.moved(now, t, &e, &s)
	}
	return b.still(now, t, &e, &s)
}

// moved is settle for a breaker that has changed its phase since it last followed.
func (b *Breakers) moved(now time.Duration, t *seat, e *entry, s *breaker.State) (c change, ok bool) {
	switch {
	case byHand(s):
		return b.says(now, t, s), true
	case e.Gen > t.gen && !b.newer(s, e):
		b.follow(now, t, e, s.Gen)
		return c, false
	case !b.underWay(e, s):
		return b.decided(now, t, e, s)
	}
	return b.offer(now, t, e, s)
}

// still is settle for a breaker that has not changed its phase.
func (b *Breakers) still(now time.Duration, t *seat, e *entry, s *breaker.State) (c change, ok bool) {
	switch {
	case e.Gen > t.gen && t.gen == 0 && !e.matters(): // no process has an entry
		t.followed(now, s.Gen, e, b)
	case e.Gen > t.gen, s.Phase != e.Phase, s.Held != e.Held:
		b.follow(now, t, e, s.Gen)
		return c, false
	}
	return b.offer(now, t, e, s)
}

// byHand reports whether an operator brought the breaker into its phase.
func byHand(s *breaker.State) bool { return s.Why == breaker.Forced || s.Why == breaker.WasReset }

func (b *Breakers) mine(e *entry) bool { return e.Phase == breaker.HalfOpen && e.Holder == b.id }

// underWay reports whether the breaker moved as the fleet expects: by its probe.
func (b *Breakers) underWay(e *entry, s *breaker.State) bool {
	return s.Phase == breaker.HalfOpen && b.mine(e)
}

// newer reports whether a breaker that decided for itself did so after the fleet's last decision.
func (b *Breakers) newer(s *breaker.State, e *entry) bool {
	return b.returns && (s.Since+b.lo).Microseconds() > e.Gen
}

// decided is settle for a breaker that changed its phase by itself in the fleet's current generation.
func (b *Breakers) decided(now time.Duration, t *seat, e *entry, s *breaker.State) (c change, ok bool) {
	switch {
	case s.Phase == breaker.Closed && !e.matters():
		t.own = s.Gen
		return c, false
	case e.Phase == breaker.HalfOpen && !b.mine(e) && now < b.over(now, e): // another process has the probe and will know more
		b.follow(now, t, e, s.Gen)
		return c, false
	}
	return b.says(now, t, s), true
}

// says returns the state of a breaker as a proposal.
func (b *Breakers) says(now time.Duration, t *seat, s *breaker.State) change {
	e := b.entry(now, t.page, s)
	switch {
	case s.Phase != breaker.HalfOpen:
	case s.Probing: // the breaker probes for itself; from now on it probes for the fleet
		e.Holder, e.Until = b.id, s.Until+b.hi
	default:
		e.Until = e.At
	}
	return change{t, e, s.Gen, s.Phase == breaker.HalfOpen && !s.Probing}
}

// entry returns a state as an entry in the next generation of a page.
func (b *Breakers) entry(now time.Duration, p *page, s *breaker.State) entry {
	at := now + b.lo
	return entry{
		Gen: max(p.Gen+1, at.Microseconds()), Phase: s.Phase, Why: s.Why, Held: s.Held,
		Since: max(0, s.Since+b.lo), Until: b.stored(s.Until), Spell: s.Spell, Good: s.Successes, At: at,
	}
}
