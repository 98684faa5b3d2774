package weir

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// charged identifies the limits that apply to a call.
type charged struct {
	by   *plan             // the plan when the call asked for the limits
	op   string            // Call.Operation
	keys map[string]string // Call.Keys
}

// moved reports whether other limits apply to the call than those it is charged to. A reload may have removed or
// added a limit, changed its name, scope or unit, or shared it. New limits start empty, because their previous usage
// is unknown. If a call kept waiting for a replaced limit, its calls and those of the new limit would together run
// twice as fast. Changes of limits that do not apply to the call do not matter. A call that is charged again keeps
// its place in the order of arrival.
func (c *charged) moved(v *live) bool { return v != c.by.live && c.differ(v) }

// differ is moved, also for the policy by which the call is charged.
func (c *charged) differ(v *live) bool {
	now := cmp.Or(v.plans[c.op], v.other)
	return !c.by.within(now, c.keys) || !now.within(c.by, c.keys)
}

// within reports whether the plan other includes all limits that a call with these keys is charged to by p.
func (p *plan) within(other *plan, keys map[string]string) bool {
	for i := range p.limits {
		r := p.limits[i].registry
		if p.limits[i].picks(keys) && !slices.ContainsFunc(other.limits, func(l counted) bool { return l.registry == r && l.picks(keys) }) {
			return false
		}
	}
	return true
}

// An account has the charges of an attempt, and what the limits decided. It holds no units until take succeeds. From
// then on it must be settled or handed back. In the zero account there are no charges, and take succeeds.
type account struct {
	charged
	limits  limit.Charges // the charges
	guessed bool          // the cost is an estimate
	why     int32         // index of the limit that made it wait or refused it, or -1
	lack    limit.Lack
	told    bool          // the advertised limits of the response were reported
	paused  time.Duration // end of the pause that its response has caused; 0 if none
}

// starts notifies the limits that the attempt is being made.
func (a *account) starts() {
	if a.by.told {
		a.limits.Sent()
	}
}

// charge computes the call's charges. It takes no units.
func (a *account) charge(now time.Duration, c *Call) {
	for i := range a.by.limits {
		l := &a.by.limits[i]
		if l.only != nil && !l.picks(c.Keys) {
			continue
		}
		charge := limit.Charge{Registry: l.registry}
		if l.scope != "" {
			if l.like >= 0 && a.limits.Len() == i { // each limit before this one has its charge
				charge.Key = a.limits.Charge(l.like).Key
			} else {
				charge.Key = l.key(c.Keys)
			}
		}
		charge.Cost = l.cost(now, charge.Key, c)
		if l.budget && !l.most && charge.Cost > 0 {
			a.limits.AddBudget(charge, c.Cost[limit.USDMost])
			continue
		}
		a.limits.AddAnother(charge) // each limit has a registry of its own
	}
}

// take takes the units of all charges. An estimate that has come to exceed a limit during the wait is reduced.
func (a *account) take(now time.Duration) limit.Verdict {
	v := a.limits.Take(now)
	if !v.OK && v.Wait == bucket.Never && a.guessed && a.limits.Fit(now) {
		return a.limits.Take(now)
	}
	return v
}

// handBack returns the units to the limits, and wakes calls that wait for them.
func (a *account) handBack(now time.Duration) {
	if a.limits.Drop(now) {
		a.kick(now)
	}
}

// kick wakes calls that wait for the limits of the call, because units have returned or a rate has changed.
func (a *account) kick(now time.Duration) {
	lines := a.by.live.u.lines
	if lines.Empty() {
		return
	}
	for i := range a.limits.Len() {
		c := a.limits.Charge(i)
		lines.KickOne(now, lineOf(now, c))
	}
}

// shared returns the index of the first charge to a shared limit, or 0 if there is none.
func (a *account) shared() int32 {
	for i := range a.limits.Len() {
		if a.limits.Charge(i).Registry.Shared() {
			return int32(i)
		}
	}
	return 0
}

// cause returns the charge to the limit that made the attempt wait or refused it; zero if there is none.
func (a *account) cause() limit.Charge {
	if a.why < 0 {
		return limit.Charge{}
	}
	return a.limits.Charge(int(a.why))
}

// wants returns what the refusing limit lacked from the store.
func (a *account) wants(now time.Duration) limit.Want {
	w := a.limits.Lacks(now, int(a.why))
	if a.lack != limit.LacksNothing {
		w.Lack = a.lack
	}
	return w
}

// levels returns the state of all limits of the call.
func (a *account) levels(now time.Duration) []LimitLevel {
	all := make([]LimitLevel, a.limits.Len())
	for i := range all {
		c := a.limits.Charge(i)
		level := a.limits.Look(now, i)
		all[i] = LimitLevel{Rule: c.Registry.Limit().InForce(level), Key: c.Key, Cost: c.Cost, Level: level}
	}
	return all
}
