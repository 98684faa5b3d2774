package demo

import (
	"math/rand/v2"
	"time"
)

// A story is what happens to the machine: it stands still for a while, or one of its
// tenants asks for more than its part.
type story struct {
	name    string // what happens, in a word
	title   string
	length  time.Duration
	workers int
	rate    float64 // calls a second of each tenant

	stall span // the machine stands still
	flood span // the last tenant asks for so many times as much
	times float64

	steady time.Duration // it is over when all is well for so long
	live   bool          // it is too short to say never
}

// tenants share the machine, each with an equal part.
var tenants = [...]string{"ash", "birch", "cedar", "dogwood"}

// noisy is the tenant that floods.
const noisy = len(tenants) - 1

// The machine does 300 calls a second, and its tenants ask for 240.
var stories = [...]story{
	{
		name: "stall", title: "The upstream stands still for 5 s",
		length: time.Minute, workers: 30, rate: 60, stall: span{15 * time.Second, 20 * time.Second}, steady: 5 * time.Second,
	},
	{
		name: "flood", title: "One of four tenants asks for 10 times as much, for 15 s",
		length: time.Minute, workers: 30, rate: 60, flood: span{15 * time.Second, 30 * time.Second}, times: 10, steady: 5 * time.Second,
	},
}

// trouble is what happens, whichever it is.
func (s story) trouble() span {
	if s.flood != (span{}) {
		return s.flood
	}
	return s.stall
}

func (s span) holds(at time.Duration) bool { return at >= s.from && at < s.to }

// next is how long after the instant a tenant calls again.
func (s story) next(r *rand.Rand, at time.Duration, tenant int) time.Duration {
	rate := s.rate
	if tenant == noisy && s.flood.holds(at) {
		rate *= s.times
	}
	return time.Duration(r.ExpFloat64() / rate * float64(time.Second))
}
