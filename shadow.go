package weir

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A shadow tries the limits of Policy.Shadow. It is an upstream with these limits that is never called. Each allowed
// attempt also asks it, on a goroutine of its own, and waits there for its turn as if the limits were binding. When the
// attempt ends, its usage is settled there, too.
type shadow struct {
	u      *Upstream
	asking atomic.Int64 // goroutines

	mu  sync.Mutex
	all map[string]*Trial // by limit
}

const (
	mostAsking    = 10_000 // attempts that wait in a shadow; others are not tried
	mostTrialKeys = 1_000  // keys of a Trial
)

// A Trial states what a limit of Policy.Shadow would have done since it was put in force. An attempt that would have been
// refused counts for the limit that refuses it. One that would have waited counts as waited for the limit with the longest
// wait, and as allowed for the others.
type Trial struct {
	Limit limit.Limit
	TrialCount
	Keys map[string]TrialCount // by key, without attempts that were allowed at once; further than the first 1,000 keys under limit.Other
}

// A TrialCount counts attempts.
type TrialCount struct {
	Allowed uint64        // without a wait
	Waited  uint64        // would have waited
	Refused uint64        // would have been refused
	Wait    time.Duration // how long they would have waited in total
}

// Trials returns what the limits of Policy.Shadow would have done, sorted by name.
func (u *Upstream) Trials() []Trial {
	s := u.live.Load().shadow
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Trial, 0, len(s.all))
	for _, t := range s.all {
		c := *t
		c.Keys = maps.Clone(t.Keys)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Trial) int { return cmp.Compare(a.Limit.Name, b.Limit.Name) })
	return all
}

// newShadow makes the shadow of the policy, or changes that of the old one. Limits that stay keep their usage, and
// unchanged ones also their counts.
func (v *live) newShadow(old *live) (err error) {
	p := &v.policy
	if len(p.Shadow) == 0 {
		if old.shadow != nil {
			old.shadow.u.Close()
		}
		return nil
	}
	q := Policy{
		Limits: p.Shadow, Undeclared: true, BreakerScope: WholeUpstream, Breaker: breaker.Config{Off: true},
		MaxWait: p.MaxWait, Fair: p.Fair, AskAgain: p.AskAgain,
	}
	for _, o := range p.Operations {
		q.Operations = append(q.Operations, Operation{Name: o.Name, Priority: o.Priority})
	}
	s := old.shadow
	if s == nil {
		s = &shadow{}
		o := v.u.options
		s.u, err = New(v.u.name+" shadow", q, Options{Clock: o.Clock, Limits: o.Limits, Fleet: o.Fleet, Rand: o.Rand})
	} else {
		err = s.u.Set(q)
	}
	if err == nil {
		s.counts(p.Shadow, old.policy.Shadow)
		v.shadow = s
	}
	return err
}

// counts prepares the counts of the limits.
func (s *shadow) counts(limits, old []limit.Limit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]*Trial)
	for _, l := range limits {
		all[l.Name] = &Trial{Limit: l, Keys: make(map[string]TrialCount)}
		if t := s.all[l.Name]; t != nil && slices.ContainsFunc(old, func(o limit.Limit) bool { return reflect.DeepEqual(o, l) }) {
			all[l.Name] = t
		}
	}
	s.all = all
}

// An understudy is an attempt in a shadow. It is safe for concurrent use.
type understudy struct {
	mu      sync.Mutex
	permit  *Permit          // nil until it is allowed
	outcome *outcome.Outcome // of the real attempt; nil until it ends
}

// try asks the limits for an attempt that was allowed. It does not wait.
func (s *shadow) try(c *Call) *understudy {
	if s.asking.Add(1) > mostAsking {
		s.asking.Add(-1)
		return nil
	}
	t, call := new(understudy), Call{
		Operation: c.Operation, API: c.API, Keys: maps.Clone(c.Keys), Cost: maps.Clone(c.Cost), Estimated: c.Estimated,
		Priority: c.Priority, Flow: c.Flow, Weight: c.Weight, MaxWait: c.MaxWait,
	}
	go func() {
		defer s.asking.Add(-1)
		p, err := s.u.Acquire(context.Background(), call)
		s.count(p, err)
		t.allow(p)
	}()
	return t
}

// allow settles the attempt if it has ended already.
func (t *understudy) allow(p *Permit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.permit = p; p != nil && t.outcome != nil {
		p.Report(*t.outcome)
	}
}

// ends reports the outcome of the real attempt.
func (t *understudy) ends(o *outcome.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.outcome = &outcome.Outcome{Class: o.Class, Usage: maps.Clone(o.Usage), Unsent: o.Unsent}
	if t.permit != nil {
		t.permit.Report(*t.outcome)
	}
}

// count counts a decision. Refusals because the store is away say nothing about the limit.
func (s *shadow) count(p *Permit, err error) {
	r, refused := errors.AsType[*Refusal](err)
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused && r.Want.Lack == limit.LacksNothing {
		s.add(r.Limit, r.Key, TrialCount{Refused: 1})
	}
	if err == nil {
		for i := range p.limits.Len() {
			c, n := p.limits.Charge(i), TrialCount{Allowed: 1}
			if p.waited > 0 && int32(i) == p.why {
				n = TrialCount{Waited: 1, Wait: p.waited}
			}
			if c.Cost > 0 {
				s.add(c.Registry.Limit().Name, c.Key, n)
			}
		}
	}
}

// add adds to the counts of a limit and a key. The lock is held.
func (s *shadow) add(name, key string, n TrialCount) {
	t := s.all[name]
	if t == nil { // the policy has changed
		return
	}
	t.TrialCount = t.TrialCount.plus(n)
	if key == "" || n.Allowed > 0 {
		return
	}
	if _, known := t.Keys[key]; !known && len(t.Keys) >= mostTrialKeys {
		key = limit.Other
	}
	t.Keys[key] = t.Keys[key].plus(n)
}

func (t TrialCount) plus(n TrialCount) TrialCount {
	return TrialCount{t.Allowed + n.Allowed, t.Waited + n.Waited, t.Refused + n.Refused, t.Wait + n.Wait}
}
