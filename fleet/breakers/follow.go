package breakers

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// follow has a breaker in the generation own adopt an entry. If it has moved
// meanwhile, the next round will see to it.
func (b *Breakers) follow(now time.Duration, t *seat, e *entry, own uint32) {
	s := b.state(now, t, e)
	if gen, ok := t.b.Adopt(now, own, s); ok {
		t.failed, t.full, t.lease = 0, false, s.Lease
		t.followed(now, gen, e, b)
	}
}

// followed notes that the breaker is in step with the entry.
func (t *seat) followed(now time.Duration, own uint32, e *entry, b *Breakers) {
	if e.Gen != t.gen || t.late == 0 {
		t.late = 1 + b.upTo(spread)
	}
	t.own, t.gen = own, e.Gen
	t.until = breaker.Forever
	if e.Phase != breaker.Closed {
		t.until = b.over(now, e)
	}
}

// over is when the time of an entry is over in any case. It is never longer than
// it was when the entry was written, should the store's clock have been set back.
func (b *Breakers) over(now time.Duration, e *entry) time.Duration {
	if e.Until >= forever {
		return breaker.Forever
	}
	return min(e.Until-b.lo, now+max(0, e.Until-e.At))
}

// forever is an instant that never comes, in instants that a store can hold.
const forever = breaker.Forever / 4

// stored is an instant as a store holds it.
func (b *Breakers) stored(at time.Duration) time.Duration {
	if at >= forever {
		return forever
	}
	return max(0, at+b.lo)
}

// state is an entry as a state of a breaker here, in instants of this process.
func (b *Breakers) state(now time.Duration, t *seat, e *entry) breaker.State {
	s := breaker.State{
		Phase: e.Phase, Why: b.why(e), Held: e.Held, Since: min(now, max(0, e.Since-b.lo)), Spell: e.Spell, Successes: e.Good,
	}
	switch {
	case e.Phase == breaker.Open:
		s.Until = b.over(now, e)
	case b.mine(e):
		// The store's clock may be as far ahead as can be: a probe that begins
		// before this is over by the deadline.
		s.Lease = e.Until - b.hi - t.b.Config().ProbeTimeout
		s.Until = s.Lease
	case e.Phase == breaker.HalfOpen:
		s.Probing, s.Until = true, b.over(now, e)
	}
	return s
}

// why is the cause as it is seen from here.
func (b *Breakers) why(e *entry) breaker.Cause {
	switch {
	case byHand(&breaker.State{Why: e.Why}), b.mine(e):
		return e.Why
	case e.Phase == breaker.Open:
		return breaker.FleetTripped
	case e.Phase == breaker.HalfOpen:
		return breaker.FleetProbes
	}
	return breaker.FleetClosed
}
