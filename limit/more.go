package limit

import (
	"sync/atomic"

	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A more has what most limiters never need. It is separate so that an idle key is small, and so that a decision
// checks a single pointer.
type more struct {
	returned   kept                                // places that were returned
	owed       kept                                // places that stand for usage beyond a reservation
	blocks     atomic.Pointer[blocks]              // nil until two cores contended
	rate       atomic.Pointer[adaptive.Controller] // nil until something was learned
	advertised atomic.Pointer[advertised]          // nil unless the upstream advertises the limit
	instead    shape                               // the implementation of any limiter that is not a local bucket
}

// grow returns more, and makes it if necessary.
func (p *places) grow() *more {
	x := p.more.Load()
	if x == nil {
		x = new(more)
		if !p.more.CompareAndSwap(nil, x) {
			x = p.more.Load()
		}
	}
	return x
}

// returned returns the returned places that are not at the end of the line; nil if there are none.
func (p *places) returned() *bucket.Returned {
	if x := p.more.Load(); x != nil {
		return x.returned.Load()
	}
	return nil
}

// blocks returns the blocks of the cores; nil until two cores contended.
func (p *places) blocks() *blocks {
	if x := p.more.Load(); x != nil {
		return x.blocks.Load()
	}
	return nil
}

// learner returns the adaptive rate; nil until an outcome was reported.
func (p *places) learner() *adaptive.Controller {
	if x := p.more.Load(); x != nil {
		return x.rate.Load()
	}
	return nil
}

// instead returns the implementation of a limiter that is not a local bucket; nil for a local bucket.
func (p *places) instead() shape {
	if x := p.more.Load(); x != nil {
		return x.instead
	}
	return nil
}
