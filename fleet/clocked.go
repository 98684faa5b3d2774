package fleet

import (
	"context"
	"time"
)

// A Clocked store does not report its time with each response: its client has to measure it. Implementations are safe for
// concurrent use.
type Clocked interface {
	// ClockState returns what this process knows of the store's clock.
	ClockState() ClockState

	// MeasureClock returns when the store's clock is known about as well as the round trip allows, or when ctx ends.
	MeasureClock(ctx context.Context) error
}

// Overlap is for how long after a process fell silent a Clocked store may grant units of rolling limits to a process that does
// not know the store's clock well yet, as if the silent process were not. The silent process uses no more until then than what
// had been granted to it before: see Beat.Late.
const Overlap = 3 * time.Second

// A ClockState is what a process knows of a store's clock. The zero ClockState is that it knows nothing. It is a value.
type ClockState struct {
	Known       bool
	Rough       bool          // the bounds are still so wide that the store grants less than it could
	Ahead       time.Duration // by how much the store's clock is ahead of this machine's: the middle of what is possible
	Uncertainty time.Duration // the store's clock is at most so much before or after that
	RoundTrip   time.Duration // the shortest that was measured
}
