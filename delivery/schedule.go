package delivery

import (
	"math/rand/v2"
	"time"
)

// A Schedule says when a delivery is tried again.
type Schedule struct {
	Delays []time.Duration // before the second attempt, the third, ...; there is one attempt more than delays
	Added  time.Duration   // the most that chance adds to a delay
}

var schedules = map[string]Schedule{
	// That of Standard Webhooks, up to 17 hours.
	"webhook": {Delays: []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour}},

	// For messages that are of use now or not at all.
	"messaging": {Delays: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, Added: 500 * time.Millisecond},
}

// usualSchedule is the name of the schedule that is used where none is named.
const usualSchedule = "webhook"

// ScheduleOf is the named schedule, "webhook" for ""; false if there is none by that name.
func ScheduleOf(name string) (Schedule, bool) {
	if name == "" {
		name = usualSchedule
	}
	s, ok := schedules[name]
	return s, ok
}

// Longest is how long it takes from the first attempt to the last, as far as the schedule says.
func (s Schedule) Longest() (all time.Duration) {
	for _, d := range s.Delays {
		all += d + s.Added
	}
	return all
}

// Delay is how long to wait after an attempt, counted from 1, has failed. It is false after the
// last one.
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
