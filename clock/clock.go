// Package clock is weir's source of time. Functions that decide take an instant as an argument. Functions that wait
// use a Clock. The simulator replaces it with a virtual clock and runs the same code.
package clock

import (
	"context"
	"time"
)

// A Clock tells time and waits. Its instants are durations since some fixed moment. They can be compared and
// subtracted, are not negative, and never run backwards, even if the wall clock is set. It is safe for concurrent
// use.
type Clock interface {
	// Now returns the present instant, which is monotonic.
	Now() time.Duration

	// Sleep waits for d, or until ctx ends, and then returns the cause of ctx's end. It returns immediately if d <=
	// 0.
	Sleep(ctx context.Context, d time.Duration) error

	// WithTimeout is context.WithTimeoutCause in this clock's time.
	WithTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc)

	// Deadline returns ctx's deadline as an instant of this clock.
	Deadline(ctx context.Context) (at time.Duration, ok bool)

	// Wall returns the time of the wall clock at an instant, as far as it is known now. Only calendars use it. The
	// wall clock can be set.
	Wall(at time.Duration) time.Time
}

// System is the machine's monotonic clock.
var System Clock = system{}

// start has a monotonic reading, so that Since needs one clock reading (25 ns here). Now and UnixNano need two (44
// ns).
var start = before(time.Now())

// before returns the origin of instants: 20 years before now, and at the latest 1980. A bubble of testing/synctest
// begins in the year 2000, and its instants must not be negative. A time before 1885 cannot have a monotonic reading,
// and machines without a battery for their clock begin in 1970.
func before(now time.Time) time.Time {
	const year = 365 * 24 * time.Hour
	return now.Add(-max(20*year, now.Round(0).Sub(time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC))))
}

type system struct{}

func (system) Now() time.Duration { return time.Since(start) }

// Wall takes both readings from one time, and returns a time without a monotonic reading: differences must be in wall
// time.
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
