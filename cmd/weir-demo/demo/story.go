package demo

import (
	"math/rand/v2"
	"time"
)

// A story is an event at the machine: it stalls for a while, or a tenant uses more than its share.
type story struct {
	name    string // short name of the event
	title   string
	length  time.Duration
	workers int
	rate    float64 // calls per second of each tenant

	stall span // the machine stalls
	flood span // the last tenant sends this many times as many calls
	times float64

	steady time.Duration // the story has recovered when it is healthy for this long
	live   bool          // too short to conclude that it never recovers
}

// tenants share the machine equally.
var tenants = [...]string{"ash", "birch", "cedar", "dogwood"}

// noisy is the index of the tenant that floods.
const noisy = len(tenants) - 1

// The machine can process 300 calls a second, and its tenants send 240.
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

// trouble returns the stall or the flood.
func (s story) trouble() span {
	if s.flood != (span{}) {
		return s.flood
	}
	return s.stall
}

func (s span) holds(at time.Duration) bool { return at >= s.from && at < s.to }

// next returns the time from at until a tenant's next call.
func (s story) next(r *rand.Rand, at time.Duration, tenant int) time.Duration {
	rate := s.rate
	if tenant == noisy && s.flood.holds(at) {
		rate *= s.times
	}
	return time.Duration(r.ExpFloat64() / rate * float64(time.Second))
}
