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
	// WholeUpstream is the BreakerScope of a Policy with a single breaker although operations are declared.
	WholeUpstream = "upstream"

	byOperation = "operation"
)

// A policy has one breaker, or one for each declared operation and one for all other calls, or one for each value of
// a scope. The number of scope values is not limited, so these breakers are bounded, and unused ones are evicted. A
// new breaker is closed.

// breakersBy returns what separate breakers are kept for: a scope, "operation", or "" if there is one for the
// upstream.
func (p *Policy) breakersBy() string {
	switch {
	case p.BreakerScope == WholeUpstream, p.BreakerScope == "" && len(p.Operations) == 0:
		return ""
	}
	return cmp.Or(p.BreakerScope, byOperation)
}

// breakersDeclared reports whether the policy has a breaker for each declared operation.
func (p *Policy) breakersDeclared() bool { return p.BreakerScope == "" && len(p.Operations) > 0 }

// newBreakers makes the breakers, or takes over the old ones if they have the same scope.
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
		keys = math.MaxInt32 // as many as the policy declares: none is ever evicted
	}
	v.breakers = breaker.NewGroup(keys, c, u.breakerChanged)
	u.join(v.breakers, by)
}

// forgetOperations removes the breakers of operations that are no longer declared.
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

// breakerOf returns the breaker of an operation, or nil if it depends on the call.
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

// breakerFor returns the breaker of a call.
func (p *plan) breakerFor(now time.Duration, c *Call) *breaker.Breaker {
	if p.breaker != nil {
		return p.breaker
	}
	return p.live.breakers.For(now, boundedKey(c.Keys[p.live.policy.BreakerScope]))
}

// allBreakers yields the existing breakers by key.
func (v *live) allBreakers() iter.Seq2[string, *breaker.Breaker] {
	if v.breaker != nil {
		return v.breaker.All()
	}
	return v.breakers.All()
}

// BreakersBy returns what separate breakers are kept for: a scope, "operation" if operations are declared, or "" if
// there is one for all calls.
func (u *Upstream) BreakersBy() string { return u.live.Load().policy.breakersBy() }

// Breaker returns the breaker of the key, so that an operator can open, close or reset it. The key is ignored if the
// upstream has one breaker. If each declared operation has a breaker, any other key means the breaker of all other
// calls.
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

// Breakers yields all existing breakers by key.
func (u *Upstream) Breakers() iter.Seq2[string, *breaker.Breaker] {
	return u.live.Load().allBreakers()
}

// setBreaker reconfigures all breakers. They keep what they have counted.
func (v *live) setBreaker(now time.Duration, c breaker.Config) {
	if v.breaker != nil {
		v.breaker.SetConfig(now, c)
	} else {
		v.breakers.SetConfig(now, c)
	}
}

// breakerChanged is called after each change of phase, while no breaker's lock is held. It first wakes the calls that
// can no longer be made, then calls the event function.
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

// join shares the breakers with the fleet, in place of those joined before.
func (u *Upstream) join(local breakers.Local, scope string) {
	if f := u.options.Fleet; f != nil {
		if u.leave != nil {
			u.leave()
		}
		u.leave = breakers.Join(f, breakers.Config{Group: u.name, Scope: scope, Clock: u.options.Clock}, local)
	}
}

// Close removes the upstream's breakers and pauses from the fleet. Call it for an upstream that is no longer used.
// Without a fleet it does nothing.
func (u *Upstream) Close() {
	u.setting.Lock()
	defer u.setting.Unlock()
	if s := u.live.Load().shadow; s != nil {
		s.u.Close()
	}
	for _, leave := range []*func(){&u.leave, &u.pauses.leave} {
		if *leave != nil {
			(*leave)()
			*leave = nil
		}
	}
}
