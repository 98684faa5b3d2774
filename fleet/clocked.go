package fleet

import (
	"context"
	"time"
)

// A Clocked store does not report its time with each response: its client has to measure it. Implementations are safe for
// concurrent use.
type Clocked interface {
	// ClockState returns this process's measurements of the store's clock.
	ClockState() ClockState

	// MeasureClock returns when the store's clock is known about as well as the round trip allows, or when ctx ends.
	MeasureClock(ctx context.Context) error
}

// Overlap is the time after a process became silent in which a Clocked store may still grant all units of a rolling
// limit to another process, if that process does not know the store's clock well yet. Meanwhile the silent process
// uses only
// units that it had been granted before; see Beat.Late.
const Overlap = 3 * time.Second

// A ClockState describes a store's clock as measured by a process. The zero ClockState means that the clock is
// unknown.
type ClockState struct {
	Known       bool
	Rough       bool          // the bounds are still so wide that the store grants less than it could
	Ahead       time.Duration // how far the store's clock is ahead of this machine's; the middle of the possible values
	Uncertainty time.Duration // the largest possible error of Ahead
	RoundTrip   time.Duration // the shortest measured
}
