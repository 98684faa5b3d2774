package sim

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A Clock tells the time of a World. Now, WithTimeout and Deadline may be used before the world runs. Sleep may be
// used only by its goroutines.
type Clock struct{ w *World }

var _ clock.Clock = (*Clock)(nil)

// Clock returns the world's clock.
func (w *World) Clock() *Clock { return &Clock{w} }

// Now returns the present instant.
func (c *Clock) Now() time.Duration { return c.w.now }

// Sleep lets other goroutines run until d has passed or ctx has ended, and then returns the cause of its end.
//
// The end of a context that neither this clock made nor is a context.WithValue around such a context is noticed when
// the goroutine that ended it sleeps or returns.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	t := c.w.current()
	if d <= 0 {
		return nil
	}
	if err := ended(ctx); err != nil {
		return err
	}
	return t.sleep(c.w.after(d), c.w.node(ctx))
}

// Go runs f concurrently, as World.Go does. Code that has only a clock, such as a fleet's heartbeats, starts its
// goroutines with it.
func (c *Clock) Go(f func()) { c.w.Go(f) }

// WithTimeout is context.WithTimeoutCause in the world's time. The deadline of the returned context counts from the
// beginning of the year 2000.
func (c *Clock) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return c.w.withTimeout(ctx, d, cause)
}

// Deadline returns ctx's deadline if this clock set it. Deadlines in real time are ignored.
func (c *Clock) Deadline(ctx context.Context) (time.Duration, bool) {
	if _, ok := ctx.Deadline(); !ok { // this also creates a context that is created lazily
		return 0, false
	}
	t, ok := ctx.Value(timeoutKey{}).(*timeout)
	if !ok || t.deadline == forever {
		return 0, false
	}
	return t.deadline, true
}

// Wall returns the time of the world's calendar, which begins with the year 2000, in UTC, and is never set.
func (c *Clock) Wall(at time.Duration) time.Time { return beginning.Add(at) }
