package limit

import "time"

// A shape is what a limiter does: as a bucket of this process (places), one that is rolling, one that
// counts by the calendar, or one whose units are kept elsewhere (leased). Its methods are those of
// Limiter. take and ask of one that is gone say no; whoever holds it looks the key up again.
type shape interface {
	take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool)
	ask(now time.Duration, n int64) time.Duration
	then(now time.Duration, ahead, n int64) time.Duration // After, with some ahead
	room(now time.Duration, n int64, at time.Duration, c int64) bool
	owe(now time.Duration, n int64)
	back(now time.Duration, t Turn, n int64)
	pause(now, until time.Duration)
	lift(now time.Duration)                    // Resume
	pausedFor(now time.Duration) time.Duration // how long a pause still lasts
	look(now time.Duration) Level

	// retire takes a limiter out of use if it is full, so that forgetting it forgets nothing but a rate that
	// was learnt long ago. Whoever still holds it is refused and must look the key up again: retired says so.
	retire(now time.Duration) bool
	retired() bool
	// close takes a limiter out of use whatever it holds. The heir is one for those who come next,
	// which stands where this one stood; owed is how many units it is in debt.
	close(now time.Duration) (heir *Limiter, owed int64)

	// These are for limiters that nobody uses yet, or under the lock of the registry.
	set(c *change) bool               // reports false, and changes nothing, if the change is beyond what it can bear
	untouched(now time.Duration) bool // to make it anew would be the same
	copyTo(t *Limiter)                // the zero one
	empty(now time.Duration)          // leaves nothing
}
