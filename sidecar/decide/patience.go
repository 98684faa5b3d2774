package decide

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// slack is how much longer than its wait an acquire may take. It is for the decision itself, and for gates that
// exceed the deadline.
const slack = time.Second

// A patience is a context with a deadline that allows work in progress to finish: its Done channel closes slack after
// the deadline. So a turn that comes at the last moment is not lost, and a caller that does not wait still gets a
// decision. The timer for the end is created when a gate waits for it, which few calls need.
type patience struct {
	context.Context // of the request
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

// Value returns the standard library's own context when the library looks for it.
func (p *patience) Value(key any) any {
	if m := p.made.Load(); m != nil {
		return m.Value(key)
	}
	return p.Context.Value(key)
}

// end releases the timer.
func (p *patience) end() {
	if m := p.made.Load(); m != nil {
		m.cancel()
	}
}
