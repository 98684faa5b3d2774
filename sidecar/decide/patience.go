package decide

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// slack is how much longer than the wait an acquire may take: for the decision
// itself, and for gates that do not keep to its deadline.
const slack = time.Second

// A patience is a context that says to end at an instant, and lets what is under way
// then come to its end: a turn that comes at the last moment is not lost, and a caller that
// has no patience at all is asked for nevertheless. What ends it, slack later, is made when
// somebody waits for its end, which the gates of few calls do.
type patience struct {
	context.Context // the request's
	until, last     time.Time

	once sync.Once
	made atomic.Pointer[ends]
}

type ends struct {
	context.Context
	cancel context.CancelFunc
}

func newPatience(request context.Context, until time.Time) *patience {
	return &patience{Context: request, until: until, last: time.Now().Add(max(0, time.Until(until)) + slack)}
}

func (p *patience) ends() context.Context {
	p.once.Do(func() {
		ctx, cancel := context.WithDeadline(p.Context, p.last)
		p.made.Store(&ends{ctx, cancel})
	})
	return p.made.Load()
}

func (p *patience) Deadline() (time.Time, bool) { return p.until, true }

func (p *patience) Done() <-chan struct{} { return p.ends().Done() }

func (p *patience) Err() error {
	if p.made.Load() != nil || !time.Now().Before(p.last) {
		return p.ends().Err()
	}
	return p.Context.Err()
}

// Value hands the standard library its own context when it looks for one.
func (p *patience) Value(key any) any {
	if m := p.made.Load(); m != nil {
		return m.Value(key)
	}
	return p.Context.Value(key)
}

// end releases what was made.
func (p *patience) end() {
	if m := p.made.Load(); m != nil {
		m.cancel()
	}
}
