package breakers

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// follow makes a breaker in generation own adopt an entry. If the breaker has changed meanwhile, the next round
// resolves it.
func (b *Breakers) follow(now time.Duration, t *seat, e *entry, own uint32) {
	s := b.state(now, t, e)
	if gen, ok := t.b.Adopt(now, own, s); ok {
		t.failed, t.full, t.lease = 0, false, s.Lease
		t.followed(now, gen, e, b)
	}
}

// followed records that the breaker has the state of the entry.
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

// over returns when the time of an entry has ended for certain. If the store's clock was set back, this is at most
// the original duration from now.
func (b *Breakers) over(now time.Duration, e *entry) time.Duration {
	if e.Until >= forever {
		return breaker.Forever
	}
	return min(e.Until-b.lo, now+max(0, e.Until-e.At))
}

// forever is an instant that never comes, small enough for a store.
const forever = breaker.Forever / 4

// stored converts an instant to the store's clock.
func (b *Breakers) stored(at time.Duration) time.Duration {
	if at >= forever {
		return forever
	}
	return max(0, at+b.lo)
}

// state converts an entry to a state of a local breaker, in instants of this process.
func (b *Breakers) state(now time.Duration, t *seat, e *entry) breaker.State {
	s := breaker.State{
		Phase: e.Phase, Why: b.why(e), Held: e.Held, Since: min(now, max(0, e.Since-b.lo)), Spell: e.Spell, Successes: e.Good,
	}
	switch {
	case e.Phase == breaker.Open:
		s.Until = b.over(now, e)
	case b.mine(e):
		// Use the highest possible time of the store: a probe that begins before the lease ends is over by the
		// deadline.
		s.Lease = e.Until - b.hi - t.b.Config().ProbeTimeout
		s.Until = s.Lease
	case e.Phase == breaker.HalfOpen:
		s.Probing, s.Until = true, b.over(now, e)
	}
	return s
}

// why returns the cause from the view of this process.
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
