package weir

import (
	"sync"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// A LimitSet holds limits of one process that several upstreams share: upstreams with the same name and Clock that
// have the set in their Options are charged to the same limiters. Where their policies state different rates for
// a limit, the lowest rate and the lowest burst apply to each of them. Limits that a Fleet shares are not in the set.
// The zero LimitSet is empty and ready for use. It is safe for concurrent use.
type LimitSet struct {
	mu  sync.Mutex
	all map[limitName]*limit.Registry
}

// A limitName identifies a limit in a LimitSet: limits that differ in one of these count different things.
type limitName struct {
	upstream, name, scope, unit string
	shape                       limit.Shape
}

// registry returns the registry of a limit, made by create if the set has none.
func (s *LimitSet) registry(now time.Duration, upstream string, l limit.Limit, create func() (*limit.Registry, error)) (*limit.Registry, error) {
	at := limitName{upstream, l.Name, l.Scope, l.UnitName(), l.Shape}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.all[at]
	if r == nil {
		r, err := create()
		if err != nil {
			return nil, err
		}
		if s.all == nil {
			s.all = make(map[limitName]*limit.Registry)
		}
		s.all[at] = r
		return r, nil
	}
	if err := l.Validate(); err != nil {
		return nil, err
	}
	lowest := *r.Limit()
	if l.PerSecond() < lowest.PerSecond() {
		lowest.Rate.Amount, lowest.Rate.Per = l.Rate.Amount, l.Rate.Per
	}
	if l.Shape == limit.Bucket {
		lowest.Rate.Burst = min(r.Limit().Rate.Full(), l.Rate.Full())
	}
	if lowest.Rate == r.Limit().Rate {
		return r, nil
	}
	return r, r.Set(now, lowest)
}
