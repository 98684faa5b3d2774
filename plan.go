package weir

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/retry"
)

// A plan is what a policy means for one operation: all that a call needs is looked up when the
// policy is put in force, and not for each call. It does not change any more, but for what its
// parts count and learn; calls keep the plan under which they began.
type plan struct {
	live   *live
	name   string
	op     *Operation
	limits []counted
	// Of all limits at once, so that a report need not ask each.
	learns  bool // a limit's rate learns from outcomes
	told    bool // or is told by answers
	hears   bool // one of both
	fair    bool // those who wait for a limit go flow by flow
	joined  bool // what is used of a limit counts in others
	silent  bool // nobody hears of attempts, and nothing is counted of them
	retry   retry.Config
	holdoff *retry.Holdoff
	breaker *breaker.Breaker // nil if it depends on the call's keys
	flight  *flight          // what is in flight; nil if it has no bound
	tallies *tallies         // what is counted of it; nil if nothing is
	none    *limitTally      // of that what is by no limit
}

// counted is a limit as calls of an operation are counted by it.
type counted struct {
	registry *limit.Registry
	scope    string
	like     int // the first limit of the plan with this scope, if that is another; -1 if it is not
	unit     string
	requests bool         // the unit is requests
	only     *limit.Match // nil if it counts every call
	tally    *limitTally  // nil if nothing is counted
}

// newPlans makes a plan for every operation that is declared or that a limit
// names, and one for all others. Without declared operations it is the limits that say which
// operations there are.
func (v *live) newPlans(now time.Duration, old *live) {
	v.plans = make(map[string]*plan)
	v.newFlight(old)
	for i := range v.policy.Operations {
		o := &v.policy.Operations[i]
		v.plans[o.Name] = v.newPlan(now, o, old)
	}
	names := []string{DefaultOperation}
	for _, l := range v.policy.Limits {
		names = append(names, l.Operations...)
	}
	for _, name := range names {
		if v.plans[name] == nil {
			v.plans[name] = v.newPlan(now, &Operation{Name: name}, old)
		}
	}
	v.other = v.plans[DefaultOperation]
}

// newPlan makes the plan of an operation. What is learnt of whether anything succeeds outlives the
// policy, by the operation's name.
func (v *live) newPlan(now time.Duration, o *Operation, old *live) *plan {
	p := &plan{live: v, name: o.Name, op: o, retry: v.policy.Retry, holdoff: new(retry.Holdoff), fair: v.policy.Fair.By != ""}
	if before := old.plans[o.Name]; before != nil {
		p.holdoff = before.holdoff
	}
	p.breaker = v.breakerOf(now, o)
	if o.Retry != nil {
		p.retry = *o.Retry
	}
	p.flight = v.flightOf(o, old)
	for _, r := range v.registries {
		if r.Limit().Counts(o.Name) {
			l := r.Limit()
			like := slices.IndexFunc(p.limits, func(o counted) bool { return o.scope == l.Scope })
			c := counted{registry: r, scope: l.Scope, like: like, unit: l.UnitName(), requests: l.UnitName() == limit.Requests}
			if l.If.Scope != "" {
				c.only = &l.If
			}
			p.limits = append(p.limits, c)
			p.learns = p.learns || l.Adaptive.On
			p.told = p.told || l.Advertised != ""
			p.hears = p.learns || p.told
			p.joined = p.joined || r.Joined()
		}
	}
	p.bind(v.u.counts)
	return p
}

// priority is a call's own, or that of its operation.
func (p *plan) priority(c *Call) limit.Priority { return cmp.Or(c.Priority, p.op.Priority) }

// linePriority returns the priority of a call as lines count it: 0 is the highest.
func (p *plan) linePriority(c *Call) int { return int(limit.High) - int(p.priority(c)) }

// bind has calls of the plan counted as those of its operation, by each of its limits. Whatever is
// counted is looked up here, so that a call need not.
func (p *plan) bind(c *Counts) {
	p.tallies = c.of(p.name)
	p.silent = c == nil && !p.live.u.options.Events.hears()
	p.none = p.tallies.of("")
	for i := range p.limits {
		l := &p.limits[i]
		l.tally = p.tallies.of(l.registry.Limit().Name)
	}
}

// plan is that of a call's operation. One that nobody declared has that of all others, and
// its own name if the policy lets it.
func (v *live) plan(c *Call) *plan {
	if c.Operation == "" && c.API == "" {
		return v.other
	}
	p := v.plans[c.Operation]
	if p != nil && c.API == "" {
		return p
	}
	p = cmp.Or(p, v.other)
	if name := cmp.Or(c.API, c.Operation); v.policy.Undeclared && name != "" {
		return v.named.plan(p, name)
	}
	return p
}

// Assign gives a call its operation: the one that it names, or else the first declared one that
// matches, or else the one of all others. matches is told whether the call has a name.
func (u *Upstream) Assign(c *Call, matches func(o *Operation, named bool) bool) *Operation {
	v := u.live.Load()
	named := c.Operation != "" || c.API != ""
	switch {
	case !v.policy.Undeclared:
	case c.Operation == DefaultOperation:
		c.Operation = "" // its name is not known, and it may be one of a class
	case c.Operation != "" && v.plans[c.Operation] == nil:
		c.API, c.Operation = cmp.Or(c.API, c.Operation), "" // the API's own name for one of a class
	}
	o := v.other.op
	for i := range v.policy.Operations {
		if p := &v.policy.Operations[i]; p.Name == c.Operation || c.Operation == "" && matches(p, named) {
			o = p
			break
		}
	}
	c.Operation = cmp.Or(c.Operation, o.Name)
	return o
}

// cost is what a call is charged by a limit under a key. A cost of 0 takes nothing of it, and waits for
// nothing.
func (l *counted) cost(now time.Duration, key string, c *Call) (cost int64) {
	if l.requests {
		cost = 1
	}
	if c.Cost == nil {
		return cost
	}
	// A cost that is a guess is cut down to what the limit holds when it is full, since no wait would
	// bring more. One that is told must not be: it could never be met, and the caller has to learn that.
	if n, ok := c.Cost[l.unit]; ok {
		cost = n
	}
	if c.Estimated && cost > 1 {
		cost = min(cost, l.registry.Most(now, key))
	}
	return cost
}

// picks reports whether a call with these keys is one of those that the limit counts.
func (l *counted) picks(keys map[string]string) bool {
	return l.only == nil || l.only.Picks(keys[l.only.Scope])
}

// named are operations that nobody declared. Beyond mostNamed they have no names of
// their own, and are counted as what they are a kind of. The map is replaced, never written, so
// that it is read without a lock.
type named struct {
	plans atomic.Pointer[map[name]*plan]
	mu    sync.Mutex
}

// A name is what an operation that nobody declared is known by: the plan that its calls go by, and
// its own name.
type name struct {
	plan *plan
	name string
}

// mostNamed is how many such names there are at most. Each is a plan and a row in every metric.
const mostNamed = 200

// plan is base under another name, or base itself if there are too many names. A name that is known
// costs one atomic load and a look into a map that nobody writes.
func (d *named) plan(base *plan, as string) *plan {
	key := name{base, as}
	if all := d.plans.Load(); all != nil {
		if p := (*all)[key]; p != nil {
			return p
		}
	}
	return d.add(key)
}

// add makes a plan under a name, in a copy of the map.
func (d *named) add(key name) *plan {
	d.mu.Lock()
	defer d.mu.Unlock()
	more := map[name]*plan{}
	if all := d.plans.Load(); all != nil {
		if p := (*all)[key]; p != nil {
			return p
		}
		maps.Copy(more, *all)
	}
	if len(key.name) > longestKey || len(more) >= mostNamed {
		return key.plan
	}
	p := new(plan)
	*p = *key.plan
	p.name, p.limits = key.name, slices.Clone(p.limits)
	p.bind(p.live.u.counts)
	more[key] = p
	d.plans.Store(&more)
	return p
}
