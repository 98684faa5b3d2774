package demo

import (
	"math"
	"slices"
	"sync"
	"time"
)

// A log records the results of the calls of a run. It is safe for concurrent use.
type log struct {
	story   story
	machine *machine

	mu   sync.Mutex
	ends []end
}

// An end is the result of a call.
type end struct {
	tenant int
	began  time.Duration // since the start
	took   time.Duration // including all attempts
	ok     bool
}

func newLog(s story, m *machine) *log { return &log{story: s, machine: m} }

func (l *log) note(e end) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, e)
}

func (l *log) all() []end {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ends)
}

// A Score is the result of a story, one way.
type Score struct {
	Calls    int     `json:"calls"`
	Good     int     `json:"good"`     // calls that were answered by any attempt
	Answered float64 `json:"answered"` // share of Good

	// Useful and Wasted split the machine's work: for callers that still waited, and for callers that had disconnected.
	Useful int `json:"useful"`
	Wasted int `json:"wasted"`

	// RecoveredMS is the time from the end of the trouble to the first 5 seconds with 99% of the calls answered. It is null if
	// there are none.
	RecoveredMS *int64 `json:"recovered_ms"`

	// Tenants has each tenant's share of answered calls since the beginning of the trouble. Quiet is the share of all tenants
	// except the flooding one.
	Tenants map[string]float64 `json:"tenants"`
	Quiet   float64            `json:"quiet"`

	// P50 and P99 are percentiles of the duration of answered calls, including all attempts.
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`

	seconds []work
	shares  [len(tenants)][]float64 // per second, the share of answered calls among the calls that began in it; negative if none did
}

func (l *log) score() *Score {
	ends := l.all()
	slices.SortFunc(ends, func(a, b end) int { return int(a.began - b.began) })
	s := &Score{Calls: len(ends), Good: good(ends), Answered: share(ends), Tenants: make(map[string]float64), seconds: l.machine.record()}
	for _, w := range s.seconds {
		s.Useful, s.Wasted = s.Useful+w.Useful, s.Wasted+w.Wasted
	}
	trouble := l.story.trouble()
	if at, ok := l.story.recovered(ends); ok {
		s.RecoveredMS = new(at.Milliseconds())
	}
	var quiet []end
	for i, name := range tenants {
		own := of(ends, i)
		since := during(own, trouble.from, l.story.length)
		if s.Tenants[name] = share(since); i != noisy {
			quiet = append(quiet, since...)
		}
		for at := time.Duration(0); at < l.story.length; at += time.Second {
			s.shares[i] = append(s.shares[i], share(during(own, at, at+time.Second)))
		}
	}
	s.Quiet = share(quiet)
	s.P50, s.P99 = percentiles(ends)
	return s
}

func of(ends []end, tenant int) (own []end) {
	for _, e := range ends {
		if e.tenant == tenant {
			own = append(own, e)
		}
	}
	return own
}

// during returns the calls that began in a time. ends must be in order of their begin.
func during(ends []end, from, to time.Duration) []end {
	at := func(t time.Duration) int {
		i, _ := slices.BinarySearchFunc(ends, t, func(e end, t time.Duration) int { return int(e.began - t) })
		return i
	}
	return ends[at(from):at(to)]
}

// share returns the share of answered calls, or a negative number if there are no calls.
func share(ends []end) float64 {
	if len(ends) == 0 {
		return -1
	}
	return float64(good(ends)) / float64(len(ends))
}

func good(ends []end) (n int) {
	for _, e := range ends {
		if e.ok {
			n++
		}
	}
	return n
}

// healthy is the required share of answered calls.
const healthy = 0.99

// recovered returns the time after the trouble from which the story stays healthy long enough.
func (s story) recovered(ends []end) (after time.Duration, ok bool) {
	const step = 100 * time.Millisecond
	since := s.trouble().to
	for at := since; at+s.steady <= s.length; at += step {
		if share(during(ends, at, at+s.steady)) >= healthy {
			return at - since, true
		}
	}
	return 0, false
}

func percentiles(ends []end) (p50, p99 float64) {
	var took []time.Duration
	for _, e := range ends {
		if e.ok {
			took = append(took, e.took)
		}
	}
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	rank := func(p int) float64 { return millis(took[(len(took)*p+99)/100-1]) }
	return rank(50), rank(99)
}

func millis(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 10 }
