package weir

import (
	"cmp"
	"iter"
	"math"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet/breakers"
)

const (
	// WholeUpstream, as a Policy's BreakerScope, is one breaker for an upstream whose
	// operations are declared.
	WholeUpstream = "upstream"

	byOperation = "operation"
)

// A policy has one breaker, one for each operation that it declares and one for all others, or one
// for each value of a scope. Of the last there may be any number, so they are bounded, and those that
// nobody has used for long are forgotten; each starts closed.

// breakersBy is what the breakers of a policy are kept by: a scope, the operation, or
// "" if there is one for the upstream.
func (p *Policy) breakersBy() string {
	switch {
	case p.BreakerScope == WholeUpstream, p.BreakerScope == "" && len(p.Operations) == 0:
		return ""
	}
	return cmp.Or(p.BreakerScope, byOperation)
}

// breakersDeclared reports whether the policy has a breaker for each declared operation.
func (p *Policy) breakersDeclared() bool { return p.BreakerScope == "" && len(p.Operations) > 0 }

// newBreakers makes the breakers, or goes on with those of before if they are kept by the same.
func (v *live) newBreakers(now time.Duration, old *live) {
	u := v.u
	c, by := v.policy.Breaker, v.policy.breakersBy()
	if old.plans != nil && by == old.policy.breakersBy() && v.policy.breakersDeclared() == old.policy.breakersDeclared() {
		v.breaker, v.breakers = old.breaker, old.breakers
		v.forgetOperations(old)
		if c != old.policy.Breaker {
			v.setBreaker(now, c)
		}
		return
	}
	if by == "" {
		v.breaker = breaker.New("", c, u.breakerChanged)
		u.join(v.breaker, "")
		return
	}
	keys := 0
	if v.policy.breakersDeclared() {
		keys = math.MaxInt32 // as many as the policy declares, and none is ever evicted
	}
	v.breakers = breaker.NewGroup(keys, c, u.breakerChanged)
	u.join(v.breakers, by)
}

// forgetOperations removes the breakers of operations that are declared no more.
func (v *live) forgetOperations(old *live) {
	if !v.policy.breakersDeclared() {
		return
	}
	for _, o := range old.policy.Operations {
		if o.Name != DefaultOperation && !v.policy.declares(o.Name) {
			v.breakers.Forget(o.Name)
		}
	}
}

// breakerOf is the breaker of all calls of an operation, or nil if that depends on the
// call.
func (v *live) breakerOf(now time.Duration, o *Operation) *breaker.Breaker {
	switch {
	case v.breaker != nil:
		return v.breaker
	case !v.policy.breakersDeclared():
		return nil
	case v.policy.declares(o.Name):
		return v.breakers.For(now, o.Name)
	}
	return v.breakers.For(now, DefaultOperation)
}

// breakerFor is the breaker of a call.
func (p *plan) breakerFor(now time.Duration, c *Call) *breaker.Breaker {
	if p.breaker != nil {
		return p.breaker
	}
	return p.live.breakers.For(now, boundedKey(c.Keys[p.live.policy.BreakerScope]))
}

// allBreakers are those there are, by key.
func (v *live) allBreakers() iter.Seq2[string, *breaker.Breaker] {
	if v.breaker != nil {
		return v.breaker.All()
	}
	return v.breakers.All()
}

// BreakersBy is what the upstream's breakers are kept by: a scope, "operation" where
// operations are declared, or "" if there is one for all calls.
func (u *Upstream) BreakersBy() string { return u.live.Load().policy.breakersBy() }

// Breaker is the breaker of the key, to be opened, closed or reset by hand. The key is
// ignored if there is one breaker for the upstream. Where there is one for each declared
// operation, a key that is none of them stands for all calls that belong to none.
func (u *Upstream) Breaker(key string) *breaker.Breaker {
	v, now := u.live.Load(), u.clock.Now()
	switch {
	case v.breaker != nil:
		return v.breaker
	case v.policy.breakersDeclared():
		return v.breakerOf(now, &Operation{Name: key})
	}
	return v.breakers.For(now, boundedKey(key))
}

// Breakers are all that there are now, by key.
func (u *Upstream) Breakers() iter.Seq2[string, *breaker.Breaker] {
	return u.live.Load().allBreakers()
}

// setBreaker gives all breakers another configuration. They keep what they have counted.
func (v *live) setBreaker(now time.Duration, c breaker.Config) {
	if v.breaker != nil {
		v.breaker.SetConfig(now, c)
	} else {
		v.breakers.SetConfig(now, c)
	}
}

// breakerChanged hears of each change of phase, when no lock of a breaker is held: first those hear
// of it who wait for calls that cannot be made now, then observers.
func (u *Upstream) breakerChanged(c breaker.Change) {
	if c.To == breaker.Open {
		u.opened()
		if c.From == breaker.Closed && u.counts != nil {
			u.counts.broke.Add(1)
		}
	}
	if u.options.Events.Breaker == nil {
		return
	}
	e := BreakerEvent{Upstream: u.name, Change: c}
	if c.To != breaker.Closed {
		e.For = max(0, c.Until-c.At)
	}
	tell(u.options.Events.Breaker, e)
}

// join makes breakers those of the fleet, in place of what was joined before.
func (u *Upstream) join(local breakers.Local, scope string) {
	if f := u.options.Fleet; f != nil {
		if u.leave != nil {
			u.leave()
		}
		u.leave = breakers.Join(f, breakers.Config{Group: u.name, Scope: scope, Clock: u.options.Clock}, local)
	}
}

// Close takes the upstream's breakers and pauses out of the fleet, for an upstream that is not
// used any more. Without a fleet there is nothing to close.
func (u *Upstream) Close() {
	u.setting.Lock()
	defer u.setting.Unlock()
	for _, leave := range []*func(){&u.leave, &u.pauses.leave} {
		if *leave != nil {
			(*leave)()
			*leave = nil
		}
	}
}
