package demo

import (
	"math"
	"slices"
	"sync"
	"time"
)

// A log is how the calls of a run ended. It is safe for concurrent use.
type log struct {
	story   story
	machine *machine

	mu   sync.Mutex
	ends []end
}

// An end is how a call ended.
type end struct {
	tenant int
	began  time.Duration // since the start
	took   time.Duration // with all its attempts
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

// A Score is how a story went, one way.
type Score struct {
	Calls    int     `json:"calls"`
	Good     int     `json:"good"`     // those that were answered, by one of their attempts
	Answered float64 `json:"answered"` // their share

	// Useful and Wasted are how much of the machine's work was for callers who were
	// there to hear the answer, and for those who had left.
	Useful int `json:"useful"`
	Wasted int `json:"wasted"`

	// RecoveredMS is how long after the trouble the first 5 seconds begin in which
	// 99% of the calls are answered; null if they do not come before the end.
	RecoveredMS *int64 `json:"recovered_ms"`

	// Tenants is the share of each one's calls that were answered, from the beginning of
	// the trouble on, and Quiet that of all but the one who floods.
	Tenants map[string]float64 `json:"tenants"`
	Quiet   float64            `json:"quiet"`

	// Of the calls that are answered half take no longer than P50, and 99 of a hundred no
	// longer than P99, with all their attempts.
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`

	seconds []work
	shares  [len(tenants)][]float64 // of the calls that began in each second, those that were answered; below 0 if none began
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

// during is those of the calls, which are in the order in which they began, that began
// then.
func during(ends []end, from, to time.Duration) []end {
	at := func(t time.Duration) int {
		i, _ := slices.BinarySearchFunc(ends, t, func(e end, t time.Duration) int { return int(e.began - t) })
		return i
	}
	return ends[at(from):at(to)]
}

// share is how many of the calls were answered; below 0 if there are none.
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

// healthy is the share of the calls that is to be answered.
const healthy = 0.99

// recovered looks for the first time after the trouble in which all is well for long
// enough.
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
