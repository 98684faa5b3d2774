package demo

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A client calls as the SDKs of model providers and clouds do: it gives an answer a
// second, and makes up to three attempts, half a second and then a second apart, less up
// to a quarter. If it is told when to come back, or not to, it heeds that.
type client struct {
	clock  clock.Clock
	chance func(below time.Duration) time.Duration
	send   func(ctx context.Context, tenant string) reply
}

// A reply is how an attempt ended.
type reply struct {
	ok    bool
	final bool          // the client was told that another attempt is of no use
	after time.Duration // when to come back, if it was told
}

const (
	patience = time.Second
	attempts = 3
)

// call makes a call, and reports whether it was answered.
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
