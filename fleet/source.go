package fleet

import (
	"github.com/seed1158cd35/weir/limit"
	"sync/atomic"
	"time"
)

// A source makes the leases of one registry. The registry's lock guards it, except for spec, which decisions
// read without a lock. A changed limit is another spec, and a spec never changes.
type source struct {
	group   *Group
	spec    atomic.Pointer[spec] // how the limit is shared
	begin   beginning            // the start of each of its leases
	passing passing
}

var _ limit.Home = (*Group)(nil)

// Home returns the group of an upstream, which makes the limiters of the upstream's shared limits.
func (f *Fleet) Home(upstream string) limit.Home { return f.Group(upstream) }

// Source implements limit.Home.
func (g *Group) Source(now time.Duration, l limit.Limit, empty bool) limit.Source {
	s := &source{group: g}
	if empty {
		s.begin = beginning{empty: true, from: now}
	}
	s.spec.Store(g.spec(l))
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sources[l.Name] = s
	return s
}

// spec returns how the group shares a limit. It depends on the fleet's lease and on the group's current guard.
func (g *Group) spec(l limit.Limit) *spec {
	o, guard := &g.fleet.o, time.Duration(g.guard.Load())
	s := newSpec(l, o.Lease, o.Guard)
	if far := time.Duration(g.reach.guard.Load()); far > 0 {
		s = s.farther(o.Lease, far)
		s.fitted = guard
		return s
	}
	return g.fleet.fitted(s, guard)
}

// New implements limit.Source.
func (s *source) New(key string) *limit.Limiter { return limit.NewLeased(s.lease(key)) }

// lease makes the lease of a key, with the start of the registry's leases.
func (s *source) lease(key string) *lease {
	p := newLease(s, key)
	if p.begin = s.begin; p.begin.empty {
		p.ownEmpty()
	}
	return p
}

// Most implements limit.Source.
func (s *source) Most() int64 { return s.spec.Load().most() }

// Burst implements limit.Source. It is less than Most if the store withholds some of the burst.
func (s *source) Burst() int64 { return s.spec.Load().burst() }

// Set implements limit.Source.
func (s *source) Set(now time.Duration, l limit.Limit) {
	next := s.group.spec(l)
	next.since = now
	s.spec.Store(next)
	s.group.nudge() // waiting callers may be served sooner than they expect
}
