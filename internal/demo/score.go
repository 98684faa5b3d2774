package demo

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/internal/practice"
)

// A Result is how both ways did.
type Result struct {
	Direct Score `json:"direct"`
	Weir   Score `json:"weir"`
}

// A Score is how one way did. Times are in milliseconds.
type Score struct {
	Calls     int   `json:"calls"`     // that have ended
	Attempts  int64 `json:"attempts"`  // requests that arrived at the upstream
	Refused   int64 `json:"refused"`   // of them, those that it refused as beyond its rate
	Failed    int64 `json:"failed"`    // of them, those that came in the outage
	Succeeded int   `json:"succeeded"` // calls
	Away      int   `json:"held_back"` // calls that weir refused without an attempt: the breaker was open

	// Before is the share of calls that succeeded before the outage.
	Before float64 `json:"succeeded_before_outage"`

	// RecoveredMS is how long after the outage the first second begins in which
	// at least 99% of the calls that end succeed; null if none does within the
	// run.
	RecoveredMS *int64 `json:"recovered_ms"`

	// Of the calls that succeeded, from when they were due.
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
}

func (s *stage) result() Result {
	return Result{s.score(s.ways[0]), s.score(s.ways[1])}
}

func (s *stage) score(w *way) Score {
	from, to := s.config.outage()
	return score(w.ended(), w.upstream.Total(), from, to, s.config.For)
}

func score(ends []end, t practice.Tally, from, to, length time.Duration) Score {
	s := Score{Calls: len(ends), Attempts: t.Arrived(), Refused: t.Refused, Failed: t.Failed}
	var took []time.Duration
	for _, e := range ends {
		if e.turnedAway {
			s.Away++
		}
		if e.ok {
			took = append(took, e.took)
		}
	}
	s.Succeeded = len(took)
	r := record(ends)
	s.Before = r.success(0, from)
	if after, ok := r.recovered(to, length); ok {
		s.RecoveredMS = new(after.Milliseconds())
	}
	slices.Sort(took)
	s.P50, s.P99 = millis(percentile(took, 50)), millis(percentile(took, 99))
	return s
}

// A recording is how calls ended, in the order of time.
type recording struct {
	ends   []end
	failed []int // how many of the first i failed
}

func record(ends []end) recording {
	r := recording{slices.Clone(ends), make([]int, len(ends)+1)}
	slices.SortFunc(r.ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	for i, e := range r.ends {
		r.failed[i+1] = r.failed[i]
		if !e.ok {
			r.failed[i+1]++
		}
	}
	return r
}

// index is the first call that ended at the instant or later.
func (r recording) index(at time.Duration) int {
	i, _ := slices.BinarySearchFunc(r.ends, at, func(e end, at time.Duration) int { return cmp.Compare(e.at, at) })
	return i
}

// success is the share of the calls that succeeded of those that ended from one
// instant to another; 0 if there were none.
func (r recording) success(from, to time.Duration) float64 {
	i, j := r.index(from), r.index(to)
	if i == j {
		return 0
	}
	return 1 - float64(r.failed[j]-r.failed[i])/float64(j-i)
}

const (
	healthy = 0.99        // of the calls
	steady  = time.Second // for so long
)

// recovered looks for the first second after the outage that was healthy. It can
// begin only at the end of the outage or right after a call that failed.
func (r recording) recovered(to, length time.Duration) (after time.Duration, ok bool) {
	begins := to
	for _, e := range r.ends[r.index(to):] {
		if begins+steady > length {
			return 0, false
		}
		if r.success(begins, begins+steady) >= healthy {
			return begins - to, true
		}
		if !e.ok {
			begins = e.at + 1
		}
	}
	return 0, false
}

// percentile is the nearest rank of sorted times.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*p+99)/100-1]
}

func millis(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 10 }
