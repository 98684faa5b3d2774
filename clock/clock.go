// Package clock is the time that weir lives in. Whatever decides takes an
// instant as an argument; whatever waits, waits here. The simulator puts a
// virtual clock in its place and runs the same code.
package clock

import (
	"context"
	"time"
)

// A Clock tells time and waits. Its instants are durations since some fixed
// moment of its own: they can be compared and subtracted, they are not negative,
// and they never run backwards, whatever is done to the wall clock. It is safe
// for concurrent use.
type Clock interface {
	// Now is the present instant, monotonic.
	Now() time.Duration

	// Sleep waits for d, or until ctx ends, and then returns the cause of ctx's
	// end. It returns at once if d <= 0.
	Sleep(ctx context.Context, d time.Duration) error

	// WithTimeout is context.WithTimeoutCause in this clock's time.
	WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)

	// Deadline is ctx's deadline as an instant of this clock.
	Deadline(ctx context.Context) (at time.Duration, ok bool)

	// Wall is what the clock on the wall shows at an instant, as far as is known
	// now. It matters to calendars alone, and it can be set.
	Wall(at time.Duration) time.Time
}

// System is the machine's monotonic clock.
var System Clock = system{}

// start carries a monotonic reading, which makes Since a single clock read
// (25 ns here) where Now and UnixNano take two (44 ns).
var start = before(time.Now())

// before is where instants are counted from: 20 years before now, and not after
// 1980. A bubble of testing/synctest begins in the year 2000, and its instants
// must not be negative. A moment before 1885 cannot carry a monotonic reading, and
// machines without a battery for their clock begin in 1970.
func before(now time.Time) time.Time {
	const year = 365 * 24 * time.Hour
	return now.Add(-max(20*year, now.Round(0).Sub(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC))))
}

type system struct{}

func (system) Now() time.Duration { return time.Since(start) }

// Wall takes both readings from one look at the clock, and gives no monotonic one
// away: what is counted from it must be wall time.
func (system) Wall(at time.Duration) time.Time {
	now := time.Now()
	return now.Round(0).Add(at - now.Sub(start))
}

func (system) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (system) WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, cause)
}

func (system) Deadline(ctx context.Context) (time.Duration, bool) {
	t, ok := ctx.Deadline()
	if !ok {
		return 0, false
	}
	return t.Sub(start), true
}
