package play

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// patience returns how long an attempt of a caller waits.
func (c *Callers) patience() time.Duration { return cmp.Or(c.Patience, usualPatience) }

// A Log records the results of the calls of a run. It is safe for concurrent use.
type Log struct {
	story   *Story
	machine *Machine

	mu       sync.Mutex
	until    time.Duration // end of the record
	ends     []end
	openings []time.Duration    // of breakers
	refusals []time.Duration    // attempts that weir refused
	fleet    func() *FleetScore // nil without a fleet
}

// An end is the result of a call.
type end struct {
	tenant int
	began  time.Duration // since the start
	took   time.Duration // including all attempts
	ended  bool
	ok     bool
}

// NewLog returns an empty log.
func NewLog(s *Story, m *Machine) *Log {
	return &Log{story: s, machine: m, until: s.Length}
}

// Begin records that a call of a tenant begins at an instant since the start. It returns the number of the call for
// End.
func (l *Log) Begin(tenant int, at time.Duration) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, end{tenant: tenant, began: at})
	return len(l.ends) - 1
}

// End records the result of a call. A call without End counts as not answered.
func (l *Log) End(call int, took time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &l.ends[call]
	e.took, e.ended, e.ok = took, true, ok
}

func (l *Log) opened(at time.Duration)  { l.openings = append(l.openings, at) }
func (l *Log) refused(at time.Duration) { l.refusals = append(l.refusals, at) }

// cut ends the record early. Calls that have not ended are removed, because their results are unknown.
func (l *Log) cut(at time.Duration) {
	l.until = at
	l.ends = slices.DeleteFunc(l.ends, func(e end) bool { return !e.ended })
}

// A Score is the result of a story, one way.
type Score struct {
	Calls    int     `json:"calls"`
	Good     int     `json:"good"`     // calls that were answered by any attempt
	Answered float64 `json:"answered"` // share of Good
	Before   float64 `json:"before"`   // share of answered calls among those before the trouble
	After    float64 `json:"after"`    // the same in the last third of the time after the trouble

	Traffic
	Refused  int `json:"refused"`         // attempts that weir refused
	InCalm   int `json:"refused_in_calm"` // before the trouble
	Openings int `json:"openings"`        // of breakers, after the trouble

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

	// Fleet is the result of a story with several processes.
	Fleet *FleetScore `json:"fleet,omitempty"`

	// EndedMS is how much of the story was played, if not all of it.
	EndedMS int64 `json:"ended_ms,omitempty"`

	seconds []Work
	begun   []begun                 // per second
	shares  [len(Tenants)][]float64 // per second, the share of answered calls among the calls that began in it; negative if none did
}

// begun counts the calls that began in a second, and the answered ones among them.
type begun struct{ calls, good int }

// Stuck reports whether fewer than half of the calls are answered long after the trouble, although most were before.
func (s *Score) Stuck() bool { return s.After >= 0 && s.After < 0.5 && s.Before >= 0.5 }

// Score returns the result so far.
func (l *Log) Score() *Score {
	l.mu.Lock()
	defer l.mu.Unlock()
	ends := slices.Clone(l.ends)
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.began, b.began) })
	from, to := l.story.trouble()
	s := &Score{Calls: len(ends), Good: good(ends), Answered: share(ends), Tenants: make(map[string]float64), seconds: l.machine.Record(), Traffic: l.machine.traffic()}
	for _, w := range s.seconds {
		s.Useful, s.Wasted = s.Useful+w.Useful, s.Wasted+w.Wasted
	}
	if l.until < l.story.Length {
		s.EndedMS = l.until.Milliseconds()
	}
	s.Before = share(during(ends, 0, from))
	s.After = share(during(ends, l.until-(l.until-to)/3, l.until))
	s.Refused = len(l.refusals)
	for _, at := range l.refusals {
		if at < from {
			s.InCalm++
		}
	}
	for _, at := range l.openings {
		if at >= to && at < l.until {
			s.Openings++
		}
	}
	if at, ok := l.recovered(ends); ok {
		s.RecoveredMS = new(at.Milliseconds())
	}
	for at := time.Duration(0); at < l.story.Length; at += time.Second {
		calls := during(ends, at, at+time.Second)
		s.begun = append(s.begun, begun{len(calls), good(calls)})
	}
	var quiet []end
	for i, name := range Tenants {
		own := of(ends, i)
		since := during(own, from, l.until)
		if s.Tenants[name] = max(0, share(since)); i != noisy {
			quiet = append(quiet, since...)
		}
		for at := time.Duration(0); at < l.story.Length; at += time.Second {
			s.shares[i] = append(s.shares[i], share(during(own, at, at+time.Second)))
		}
	}
	s.Quiet = share(quiet)
	s.P50, s.P99 = percentiles(ends)
	if l.fleet != nil {
		s.Fleet = l.fleet()
	}
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
		i, _ := slices.BinarySearchFunc(ends, t, func(e end, t time.Duration) int { return cmp.Compare(e.began, t) })
		return i
	}
	return ends[at(from):max(at(from), at(to))]
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
func (l *Log) recovered(ends []end) (after time.Duration, ok bool) {
	const step = 100 * time.Millisecond
	_, since := l.story.trouble()
	steady := l.story.steady()
	for at := since; at+steady <= l.until; at += step {
		if share(during(ends, at, at+steady)) >= healthy {
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
