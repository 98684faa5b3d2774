package weir

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/retry"
)

// A plan is what a policy means for one operation. It is computed when the policy is put in force, so that a call
// looks nothing up. Only its counters and learned values change. A call keeps the plan with which it began.
type plan struct {
	live   *live
	name   string
	op     *Operation
	limits []counted
	// Summaries of all limits, so that a report need not ask each.
	learns  bool // a limit has an adaptive rate
	told    bool // a limit is advertised by responses
	hears   bool // learns or told
	fair    bool // calls that wait for a limit take turns by flow
	settles bool // also a success is settled that used what it was charged: usage counts in other limits too, or a limit is a budget
	silent  bool // attempts are neither reported nor counted
	budgets bool // a limit is a budget
	retry   retry.Config
	holdoff *retry.Holdoff
	breaker *breaker.Breaker // nil if it depends on the call's keys
	flight  *flight          // its concurrency bound; nil if none
	tallies *tallies         // its counters; nil if calls are not counted
	none    *limitTally      // its counters of decisions without a limit
}

// A counted is a limit as it applies to an operation.
type counted struct {
	registry *limit.Registry
	scope    string
	several  []string // the scopes of a combination; nil for one scope
	like     int      // index of the first limit of the plan with this scope, if that is another; otherwise -1
	unit     string
	requests bool         // the unit is requests
	budget   bool         // the unit is dollars
	most     bool         // calls hold the largest cost that they can have
	only     *limit.Match // nil if it counts every call
	tally    *limitTally  // its counters; nil if calls are not counted
}

// newPlans makes a plan for every operation that is declared or that a limit names, and a default plan.
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

// newPlan makes the plan of an operation. Its holdoff, which tracks whether attempts succeed, is taken from the old
// plan of that name.
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
			c := counted{registry: r, scope: l.Scope, like: like, unit: l.UnitName(), requests: l.UnitName() == limit.Requests, budget: l.IsBudget(), most: l.Hold == limit.HoldMost}
			if scopes.Several(l.Scope) {
				c.several = scopes.Names(l.Scope)
			}
			if l.If.Scope != "" {
				c.only = &l.If
			}
			p.limits = append(p.limits, c)
			p.learns = p.learns || l.Adaptive.On
			p.told = p.told || l.Advertised != ""
			p.hears = p.learns || p.told
			p.budgets = p.budgets || c.budget
			p.settles = p.settles || r.Joined() || c.budget
		}
	}
	p.bind(v.u.counts)
	return p
}

// priority returns the call's priority, or that of its operation.
func (p *plan) priority(c *Call) limit.Priority { return cmp.Or(c.Priority, p.op.Priority) }

// flow returns the flow of a call under a Fair policy, and "" under another one.
func (p *plan) flow(c *Call) string {
	if !p.fair {
		return ""
	}
	return boundedKey(cmp.Or(c.Flow, c.Keys[p.live.policy.Fair.By]))
}

// linePriority returns the priority of a call as queues count it: 0 is the highest.
func (p *plan) linePriority(c *Call) int { return int(limit.High) - int(p.priority(c)) }

// bind looks up the counters of the plan's operation and limits, so that a call need not.
func (p *plan) bind(c *Counts) {
	p.tallies = c.of(p.name)
	p.silent = c == nil && !p.live.u.options.Events.hears()
	p.none = p.tallies.of("")
	for i := range p.limits {
		l := &p.limits[i]
		l.tally = p.tallies.of(l.registry.Limit().Name)
	}
}

// plan returns the plan of a call's operation. An undeclared operation has the default plan, under its own name if
// the policy allows that.
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

// Assign sets the operation of a call: the one that it names, or else the first declared operation that matches, or
// else the default. matches receives whether the call has a name.
func (u *Upstream) Assign(c *Call, matches func(o *Operation, named bool) bool) *Operation {
	v := u.live.Load()
	named := c.Operation != "" || c.API != ""
	switch {
	case !v.policy.Undeclared:
	case c.Operation == DefaultOperation:
		c.Operation = "" // its name is unknown, and it may belong to a class
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

// cost returns what a call costs of a limit under a key. A cost of 0 takes no units and waits for nothing.
func (l *counted) cost(now time.Duration, key string, c *Call) (cost int64) {
	if l.requests {
		cost = 1
	}
	if c.Cost == nil {
		return cost
	}
	if l.budget {
		return l.dollars(c)
	}
	// An estimated cost is reduced to what the limit holds when full, since no wait would bring more. A stated cost
	// is not: it can never be met, and the caller has to learn that.
	if n, ok := c.Cost[l.unit]; ok {
		cost = n
	}
	if c.Estimated && cost > 1 {
		cost = min(cost, l.registry.Burst(now, key))
	}
	return cost
}

// dollars returns the expected cost of a call or, if the limit requires it, the largest cost that it can have. The cost is
// negative if the call has no price.
func (l *counted) dollars(c *Call) int64 {
	expected := c.Cost[limit.USD]
	if l.most && expected >= 0 {
		return max(expected, c.Cost[limit.USDMost])
	}
	return expected
}

// key returns the key under which a call is charged to the limit.
func (l *counted) key(keys map[string]string) string {
	if l.several != nil {
		return boundedKey(scopes.Key(l.several, keys))
	}
	return boundedKey(keys[l.scope])
}

// picks reports whether the limit applies to a call with these keys.
func (l *counted) picks(keys map[string]string) bool {
	return l.only == nil || l.only.Picks(keys[l.only.Scope])
}

// A named has the plans of undeclared operations. Operations beyond mostNamed share the plan of their class. The map
// is replaced and never written, so that it is read without a lock.
type named struct {
	plans atomic.Pointer[map[name]*plan]
	mu    sync.Mutex
}

// A name identifies an undeclared operation: the plan of its class and its name.
type name struct {
	plan *plan
	name string
}

// mostNamed is the largest number of such names. Each is a plan, and a row in every metric.
const mostNamed = 200

// plan returns base under another name, or base itself if there are too many names. A known name costs one atomic
// load and one map lookup.
func (d *named) plan(base *plan, as string) *plan {
	key := name{base, as}
	if all := d.plans.Load(); all != nil {
		if p := (*all)[key]; p != nil {
			return p
		}
	}
	return d.add(key)
}

// add adds a named plan to a copy of the map.
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
