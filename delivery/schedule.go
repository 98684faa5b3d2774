package delivery

import (
	"math/rand/v2"
	"time"
)

// A Schedule defines when a delivery is retried.
type Schedule struct {
	Delays []time.Duration // before the second attempt, the third, and so on; there is one more attempt than delays
	Added  time.Duration   // the maximum random addition to a delay
}

var schedules = map[string]Schedule{
	// The example of Standard Webhooks, up to 17 hours.
	"webhook": {Delays: []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour}},

	// For messages that are useless when late.
	"messaging": {Delays: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, Added: 500 * time.Millisecond},
}

const usualSchedule = "webhook"

// ScheduleOf returns the schedule with a name. The empty name means "webhook". It returns false if there is none.
func ScheduleOf(name string) (Schedule, bool) {
	if name == "" {
		name = usualSchedule
	}
	s, ok := schedules[name]
	return s, ok
}

// Longest returns the maximum time from the first attempt to the last. It does not include waits that upstreams ask
// for.
func (s Schedule) Longest() (all time.Duration) {
	for _, d := range s.Delays {
		all += d + s.Added
	}
	return all
}

// Delay returns how long to wait after a failed attempt, which counts from 1. It returns false after the last one.
func (s Schedule) Delay(attempt int) (time.Duration, bool) {
	if attempt < 1 || attempt > len(s.Delays) {
		return 0, false
	}
	d := s.Delays[attempt-1]
	if s.Added > 0 {
		d += rand.N(s.Added + 1)
	}
	return d, true
}
