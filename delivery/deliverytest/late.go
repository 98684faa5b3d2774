package deliverytest

import (
	"context"
	"time"
)

// HeardLate returns a context that times out after lasts, but is done only later, as in a process that was suspended.
func HeardLate(ctx context.Context, lasts, later time.Duration) context.Context {
	c := &heardLate{Context: ctx, until: time.Now().Add(lasts), done: make(chan struct{})}
	time.AfterFunc(lasts+later, func() { close(c.done) })
	return c
}

type heardLate struct {
	context.Context
	until time.Time
	done  chan struct{}
}

func (c *heardLate) Deadline() (time.Time, bool) { return c.until, true }
func (c *heardLate) Done() <-chan struct{}       { return c.done }
func (c *heardLate) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}
