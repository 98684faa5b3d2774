package weir

import (
	"reflect"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/retry"
)

// live is a policy in force, with the state that belongs to it. Upstream.Set makes a new one out of
// the one before and puts it in its place with one store; what it says does not change afterwards. So
// a call reads the policy without a lock, and goes by the same one to its end, but for limits that
// come anew (see charged).
type live struct {
	u          *Upstream
	policy     Policy
	plans      map[string]*plan
	other      *plan         // for operations that nobody declared
	named      named         // theirs, by name
	flight     *flight       // of all operations together; nil if each has its own, or none
	slotWait   time.Duration // how long a call may wait for a slot of it
	registries []*limit.Registry
	breaker    *breaker.Breaker // nil if there is one per key
	breakers   *breaker.Group   // by operation, or by the values of a scope
	purse      retry.Purse
	budget     *retry.Budget   // the purse, if it is one
	retries    *limit.Registry // of all processes together; nil if they have no bound
	alone      *limit.Registry // the same of this process, for while the store cannot say; nil if retries is not shared
}

// build makes what the policy means, out of what the one before has.
func (v *live) build(old *live) error {
	now := v.u.clock.Now()
	gone := old.loses(v.policy.Limits, v.u.shares)
	for _, l := range v.policy.Limits {
		r, err := v.registry(now, old, l, gone)
		if err != nil {
			return err
		}
		v.registries = append(v.registries, r)
	}
	limit.Join(v.registries)
	if err := v.newPurse(old); err != nil {
		return err
	}
	if err := v.newRetries(now, old); err != nil {
		return err
	}
	v.newBreakers(now, old)
	v.newPlans(now, old)
	return nil
}

// registry is the registry of a limit: the old one if there is one by the name, of the same scope and
// unit, and shared as before, so that what it has counted stays counted; and an empty one, of which
// nothing is left at first, if it may be one of those that are gone. A policy must not be a way to
// get a limit full again.
func (v *live) registry(now time.Duration, before *live, l limit.Limit, gone bool) (*limit.Registry, error) {
	u := v.u
	shares := u.shares(&l)
	if set := u.options.Limits; set != nil && !shares {
		return set.registry(now, u.name, l, func() (*limit.Registry, error) { return limit.NewRegistry(now, l, limit.WithWall(u.clock)) })
	}
	for _, r := range before.registries {
		old := r.Limit()
		if !same(old, &l) || r.Shared() != shares {
			continue
		}
		if reflect.DeepEqual(*old, l) {
			return r, nil
		}
		return r, r.Set(now, l)
	}
	switch {
	case shares && gone:
		return limit.NewSharedEmpty(now, l, u.options.Fleet.Home(u.name))
	case shares:
		return limit.NewShared(now, l, u.options.Fleet.Home(u.name))
	case gone:
		return limit.NewEmpty(now, l, limit.WithWall(u.clock))
	}
	return limit.NewRegistry(now, l, limit.WithWall(u.clock))
}

// same reports whether a limit of a new policy goes on with an old one's state: what it counts, and
// for whom, must be the same, whatever its rate is now.
func same(old, l *limit.Limit) bool {
	return old.Name == l.Name && old.Scope == l.Scope && old.UnitName() == l.UnitName()
}

// loses reports whether a limit in force has no place among the new ones. Then any
// of those that are new may be the same limit under another name, scope or unit, or shared
// where it was not.
func (v *live) loses(limits []limit.Limit, shares func(*limit.Limit) bool) bool {
	for _, r := range v.registries {
		if !slices.ContainsFunc(limits, func(l limit.Limit) bool { return same(r.Limit(), &l) && r.Shared() == shares(&l) }) {
			return true
		}
	}
	return false
}

// newPurse makes what pays for retries, or goes on with that of before if nothing about it changes:
// a reload must not fill an empty purse.
func (v *live) newPurse(old *live) (err error) {
	p, q := &v.policy, &old.policy
	if old.purse != nil && p.Budget == q.Budget && reflect.DeepEqual(p.Quota, q.Quota) {
		v.purse, v.budget = old.purse, old.budget
		return nil
	}
	if p.Quota != nil {
		v.purse, err = retry.NewQuota(*p.Quota)
	} else {
		v.budget, err = retry.NewBudget(p.Budget)
		v.purse = v.budget
	}
	return err
}

// newRetries makes the limit that the retries of all processes are charged to. They come
// in spells, so without a burst of its own it lets the whole amount go at any time, and no
// more in any period.
func (v *live) newRetries(now time.Duration, old *live) error {
	all := v.policy.Budget.All
	if all == (bucket.Rate{}) {
		return nil
	}
	l := limit.Limit{Name: "retries", Unit: "retries", Rate: all}
	if all.Burst == 0 {
		l.Shape = limit.Rolling
	}
	if v.retries, v.alone = old.retries, old.alone; v.retries != nil {
		if v.alone != nil {
			if err := v.alone.Set(now, l); err != nil {
				return err
			}
		}
		return v.retries.Set(now, l)
	}
	r, err := v.registry(now, &live{}, l, false)
	if v.retries = r; err != nil || !r.Shared() {
		return err
	}
	v.alone, err = limit.NewRegistry(now, l, limit.WithWall(v.u.clock))
	return err
}
