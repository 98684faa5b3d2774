package limit

import "time"

// A shape is the implementation of a limiter: a bucket of this process (places), a rolling limit, a calendar limit,
// or units that a store grants (leased). Its methods correspond to the methods of Limiter. If a shape is retired,
// take and ask refuse, and the caller must look up the key again.
type shape interface {
	take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool)
	ask(now time.Duration, n int64) time.Duration
	then(now time.Duration, ahead, n int64) time.Duration // After, with units ahead
	room(now time.Duration, n int64, at time.Duration, c int64) bool
	owe(now time.Duration, n int64)
	back(now time.Duration, t Turn, n int64)
	pause(now, until time.Duration)
	lift(now time.Duration)                    // Resume
	pausedFor(now time.Duration) time.Duration // how long a pause still lasts
	look(now time.Duration) Level

	// retire takes a limiter out of use if it is full, so that only a rate learned long ago is lost. Callers that
	// still hold it are refused and must look up the key again: retired then returns true.
	retire(now time.Duration) bool
	retired() bool
	// close takes a limiter out of use in any state. It returns an heir with the same state for later callers, and
	// the debt in units.
	close(now time.Duration) (heir *Limiter, owed int64)

	// The methods below are for limiters that are not in use yet, or are called under the registry's lock.
	set(c *change) bool               // reports false, and changes nothing, if the limiter cannot follow the change
	untouched(now time.Duration) bool // reports whether a new limiter would be the same
	copyTo(t *Limiter)                // t is the zero limiter
	empty(now time.Duration)          // uses all units
}
