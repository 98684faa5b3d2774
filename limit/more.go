package limit

import (
	"sync/atomic"

	"github.com/seed1158cd35/weir/adaptive"
	"github.com/seed1158cd35/weir/bucket"
)

// more is what most limiters never have. It stands apart so that an idle key is
// small, and so that the path of a decision looks at one pointer for all of it.
type more struct {
	spare atomic.Pointer[bucket.Spare]        // places that came back
	crowd atomic.Pointer[crowd]               // blocks that cores hold
	rate  atomic.Pointer[adaptive.Controller] // nil until something was learnt
	roll  *roll                               // instead of all else, for a rolling limit
}

// grow makes more.
func (m *Limiter) grow() *more {
	x := m.more.Load()
	if x == nil {
		x = new(more)
		if !m.more.CompareAndSwap(nil, x) {
			x = m.more.Load()
		}
	}
	return x
}

func (m *Limiter) spare() *bucket.Spare {
	if x := m.more.Load(); x != nil {
		return x.spare.Load()
	}
	return nil
}

func (m *Limiter) crowd() *crowd {
	if x := m.more.Load(); x != nil {
		return x.crowd.Load()
	}
	return nil
}

func (m *Limiter) learner() *adaptive.Controller {
	if x := m.more.Load(); x != nil {
		return x.rate.Load()
	}
	return nil
}

func (m *Limiter) roll() *roll {
	if x := m.more.Load(); x != nil {
		return x.roll
	}
	return nil
}
