package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// sooner reports whether an upstream will restore its whole limit long before the assumed rate would: for example 3 a
// minute with 2 remaining, and all 3 back in 0.1 s. Either the limit has another window, or a new window is about to
// begin. The caller then relies on the remaining units and the reset instead of the rate.
func sooner(said *outcome.Level, rate bucket.Rate) bool {
	gone := said.Limit - said.Remaining
	if said.Remaining < 0 || gone <= 0 || said.Reset <= 0 {
		return false
	}
	takes := time.Duration(float64(gone) / rate.PerSecond() * float64(time.Second))
	back := atLatest(said.Reset)
	return takes >= 2*back && takes-back >= 200*time.Millisecond
}

// atLatest returns the longest duration that a reset can mean: some upstreams round it to seconds.
func atLatest(reset time.Duration) time.Duration {
	if reset%time.Second == 0 {
		return reset + time.Second
	}
	return reset
}

// until returns the rate that applies until everything is back, and further until the next response reports more. The
// remaining units may be used until the reset. If none remain, the limit must be held until the reset. The full
// amount may then be used in an equal time. took is how long the call took. At most one limit is used in the time of
// three calls, because it takes two to learn that a rate is too high.
func until(said *outcome.Level, rate bucket.Rate, took time.Duration) bucket.Rate {
	n := said.Remaining
	if n == 0 {
		n = said.Limit
	}
	heard := time.Duration(3 * float64(took) * float64(n) / float64(said.Limit))
	r := bucket.Rate{Amount: n, Per: max(atLatest(said.Reset), heard), Burst: rate.Full()}
	if r.Validate() != nil {
		return rate
	}
	return r
}

// mostHeld is the longest that one response without remaining units can hold a limit, even if it reports a later
// reset.
const mostHeld = time.Minute
