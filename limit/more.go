package limit

import (
	"sync/atomic"

	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// more is what most limiters never have. It stands apart so that an idle key is
// small, and so that the path of a decision looks at one pointer for all of it.
type more struct {
	returned   kept                                // places that came back
	owed       kept                                // places that stand for what was used beyond its reservation
	blocks     atomic.Pointer[blocks]              // nil until two cores met
	rate       atomic.Pointer[adaptive.Controller] // nil until something was learnt
	advertised atomic.Pointer[advertised]          // nil unless the upstream says what it allows
	instead    shape                               // of all else, for limits that are no bucket of this process
}

// grow makes more.
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

// returned is what came back and is not at the end of what was given away; nil for nothing.
func (p *places) returned() *bucket.Returned {
	if x := p.more.Load(); x != nil {
		return x.returned.Load()
	}
	return nil
}

// blocks is what cores hold of what was given away; nil until two of them met.
func (p *places) blocks() *blocks {
	if x := p.more.Load(); x != nil {
		return x.blocks.Load()
	}
	return nil
}

// learner is the rate that learns; nil until an outcome was reported.
func (p *places) learner() *adaptive.Controller {
	if x := p.more.Load(); x != nil {
		return x.rate.Load()
	}
	return nil
}

// instead is what answers instead of the places; nil for a bucket of this process.
func (p *places) instead() shape {
	if x := p.more.Load(); x != nil {
		return x.instead
	}
	return nil
}
