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

// A live is a policy in force with its state. Upstream.Set makes a new one from the old one and stores it atomically.
// Its configuration does not change afterwards. So a call reads the policy without a lock and uses the same one until
// it ends, except for new limits (see charged).
type live struct {
	u          *Upstream
	policy     Policy
	plans      map[string]*plan
	other      *plan         // for undeclared operations
	named      named         // plans of undeclared operations, by name
	flight     *flight       // of all operations together; nil if each has its own or none
	slotWait   time.Duration // how long a call may wait for a slot
	registries []*limit.Registry
	breaker    *breaker.Breaker // nil if there are several
	breakers   *breaker.Group   // by operation, or by the values of a scope
	purse      retry.Purse
	budget     *retry.Budget   // purse, if it is a budget
	shadow     *shadow         // nil without Policy.Shadow
	retries    *limit.Registry // the limit of the fleet's retries; nil if there is none
	alone      *limit.Registry // its local replacement while the store is unknown; nil if retries is not shared
}

// build makes the state of the policy, reusing that of the old one.
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
	return v.newShadow(old)
}

// registry returns the registry of a limit. It reuses the old one with its counts if name, scope, unit and sharing
// are equal. If gone is set, the limit may be a renamed old one, so its new registry starts empty: a reload must not
// refill a limit.
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

// same reports whether a new limit continues an old one's state: both must count the same, at any rate.
func same(old, l *limit.Limit) bool {
	return old.Name == l.Name && old.Scope == l.Scope && old.UnitName() == l.UnitName()
}

// loses reports whether a limit in force has no equal among the new ones. Then any new limit may be the old one with
// another name, scope, unit or sharing.
func (v *live) loses(limits []limit.Limit, shares func(*limit.Limit) bool) bool {
	for _, r := range v.registries {
		if !slices.ContainsFunc(limits, func(l limit.Limit) bool { return same(r.Limit(), &l) && r.Shared() == shares(&l) }) {
			return true
		}
	}
	return false
}

// newPurse makes the retry budget, or reuses the old one if its configuration is the same: a reload must not refill
// it.
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

// newRetries makes the limit of the retries of all processes. Retries come in bursts. So without a configured burst
// it is a rolling limit, which allows the complete amount at any time and no more in any period.
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
