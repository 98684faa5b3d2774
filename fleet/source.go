package fleet

import (
	"github.com/seed1158cd35/weir/limit"
	"sync/atomic"
	"time"
)

// A source makes the leases of one registry. It is guarded by the registry's lock, but for spec, which decisions read
// without one: a limit that is changed is another spec, and a spec never changes.
type source struct {
	group   *Group
	spec    atomic.Pointer[spec] // how the limit is shared
	begin   beginning            // of each of the leases
	passing passing
}

var _ limit.Home = (*Group)(nil)

// Home is the group of an upstream: where the limiters of its shared limits come from.
func (f *Fleet) Home(upstream string) limit.Home { return f.Group(upstream) }

// Source is Home's.
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

// spec is how the group shares a limit, by the fleet's lease and by the guard that follows the distance of the store.
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

// New is Source's.
func (s *source) New(key string) *limit.Limiter { return limit.NewLeased(s.lease(key)) }

// lease makes the lease of a key, which begins as those of its registry do.
func (s *source) lease(key string) *lease {
	p := newLease(s, key)
	if p.begin = s.begin; p.begin.empty {
		p.ownEmpty()
	}
	return p
}

// Most is Source's: the store keeps something back.
func (s *source) Most() int64 { return s.spec.Load().most() }

// Set is Source's.
func (s *source) Set(now time.Duration, l limit.Limit) {
	next := s.group.spec(l)
	next.since = now
	s.spec.Store(next)
	s.group.nudge() // there may be more than those who wait were told
}
