package sim

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A Clock tells the time of a World. Now, WithTimeout and Deadline may be used
// before the world runs; Sleep belongs to its goroutines.
type Clock struct{ w *World }

var _ clock.Clock = (*Clock)(nil)

// Clock is the world's clock.
func (w *World) Clock() *Clock { return &Clock{w} }

// Now is the present instant.
func (c *Clock) Now() time.Duration { return c.w.now }

// Sleep lets the others run until d has passed or ctx has ended, and then
// returns the cause of its end.
//
// Of a context that this clock did not make, nor a context.WithValue around one,
// the end is noticed when the goroutine that ended it sleeps or returns.
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

// Go lets f run beside the others, as World.Go does: what goes on beside its caller and
// is given nothing but a clock, a fleet's beats for one, asks the clock for it.
func (c *Clock) Go(f func()) { c.w.Go(f) }

// WithTimeout is context.WithTimeoutCause in the world's time. The deadline that
// the context shows is counted from the beginning of the year 2000.
func (c *Clock) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return c.w.withTimeout(ctx, d, cause)
}

// Deadline is ctx's deadline, as far as contexts of this clock set it: those of
// the real one mean nothing here.
func (c *Clock) Deadline(ctx context.Context) (time.Duration, bool) {
	if _, ok := ctx.Deadline(); !ok { // also lets a context that is made when needed be made
		return 0, false
	}
	t, ok := ctx.Value(timeoutKey{}).(*timeout)
	if !ok || t.deadline == forever {
		return 0, false
	}
	return t.deadline, true
}

// Wall is the world's calendar: it begins with the year 2000, in UTC, and nobody
// sets it.
func (c *Clock) Wall(at time.Duration) time.Time { return beginning.Add(at) }
