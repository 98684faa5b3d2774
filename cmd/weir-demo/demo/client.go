package demo

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A client calls as the SDKs of model providers and clouds do. It waits one second for a response, and makes up to three
// attempts, with waits of 0.5 and 1 s, shortened by up to a quarter. It obeys a response that specifies a wait or forbids a
// retry.
type client struct {
	clock  clock.Clock
	chance func(below time.Duration) time.Duration
	send   func(ctx context.Context, tenant string) reply
}

// A reply is the result of an attempt.
type reply struct {
	ok    bool
	final bool          // the response forbids a retry
	after time.Duration // the wait in the response, or 0
}

const (
	patience = time.Second
	attempts = 3
)

// call makes a call and reports whether it was answered.
func (c *client) call(ctx context.Context, tenant string) bool {
	wait := 500 * time.Millisecond
	for n := range attempts {
		r := c.attempt(ctx, tenant)
		if r.ok || r.final || n == attempts-1 {
			return r.ok
		}
		pause := wait - c.chance(wait/4)
		if r.after > 0 {
			pause = r.after
		}
		if wait *= 2; c.clock.Sleep(ctx, pause) != nil {
			return false
		}
	}
	return false
}

func (c *client) attempt(ctx context.Context, tenant string) reply {
	ctx, leave := c.clock.WithTimeout(ctx, patience, nil)
	defer leave()
	return c.send(ctx, tenant)
}
