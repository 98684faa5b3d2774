package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// sooner reports whether an upstream says that all of its limit will be back long before
// the rate, as it was understood, would bring it back: 3 a minute of which 2 are left, and
// all 3 in 0.1 s. Either the limit is one of another window, or a new window is about to
// begin. What is left and when more comes is then believed, and the rate is not.
func sooner(said *outcome.Level, rate bucket.Rate) bool {
	gone := said.Limit - said.Remaining
	if said.Remaining < 0 || gone <= 0 || said.Reset <= 0 {
		return false
	}
	takes := time.Duration(float64(gone) / rate.PerSecond() * float64(time.Second))
	back := atLatest(said.Reset)
	return takes >= 2*back && takes-back >= 200*time.Millisecond
}

// atLatest is the longest that a reset can mean: some are rounded to seconds.
func atLatest(reset time.Duration) time.Duration {
	if reset%time.Second == 0 {
		return reset + time.Second
	}
	return reset
}

// until is the rate that holds until everything is back, and goes on until the next answer
// says more: what is left may go until then; if nothing is, the limit has to be held until
// then and all of it may go in as long again. took is how long the answer was on its way.
// What goes while three such are must not be more than the limit, for it takes two to hear
// that a rate is too fast.
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

// mostHeld bounds, whatever the upstream says of its reset, how long one answer can hold a limit
// because nothing is left of it.
const mostHeld = time.Minute
