package learn

import (
	"math"
	"slices"
	"time"
)

// An estimate is what is known about the limit of a group of calls, whose single times are known. The zero estimate
// contains no calls.
type estimate struct {
	begun, last int64   // times of calls
	taken       int64   // number of calls that were not throttled
	amount      float64 // usage of these calls, in the unit that is counted
	throttles   int64
	spans       [len(lengths)]spans
	grid        *grid // nil until the first call
	held        held
	took        took
	inDry       [2]float64 // calls while other calls were throttled: accepted, throttled
}

// lengths are minimum lengths of spans between two throttles. Short spans distinguish a bucket from noise. Only long
// spans show windows of a minute.
var lengths = [...]time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}

// leastCalls is the minimum number of calls in a span. One call more or less is then at most 2.5% of it.
const leastCalls = 40

func (e *estimate) add(at int64, throttled bool, amount float64, took time.Duration) {
	if e.begun == 0 {
		e.begun = at
	}
	e.last = max(e.last, at)
	if e.grid == nil {
		e.grid = newGrid()
	}
	if !throttled {
		e.taken++
		for i := range e.spans {
			e.spans[i].calls++
		}
		e.took.add(took)
		e.take(at, amount, took)
		return
	}
	e.throttles++
	e.held.add(at, 0, true, 0)
	e.grid.throttle(at)
	for i := range e.spans {
		e.spans[i].throttle(at, lengths[i])
	}
}

// take records usage.
func (e *estimate) take(at int64, amount float64, took time.Duration) {
	if e.grid == nil {
		e.grid = newGrid()
	}
	e.amount += amount
	e.held.add(at, amount, false, took)
	e.grid.take(at, amount)
	for i := range e.spans {
		e.spans[i].amount += amount
	}
}

// rest discards the state in progress, because the clock was set.
func (e *estimate) rest() {
	e.last = 0
	e.held.clear()
	if e.grid != nil {
		e.grid.at = 0
	}
	for i := range e.spans {
		e.spans[i].since = 0
	}
}

// spans are the rates between throttles.
type spans struct {
	since  int64 // time of the throttle that began the current span; 0 means none
	amount float64
	calls  int
	all    sample
}

func (s *spans) throttle(at int64, least time.Duration) {
	long := time.Duration(at - s.since)
	if s.since != 0 && (s.calls < leastCalls || long < least) {
		return
	}
	if s.since != 0 {
		s.all.add(s.amount / long.Seconds())
	}
	s.since, s.amount, s.calls = at, 0, 0
}

// A sample keeps some of many numbers: every second, every fourth and so on, as the number grows.
type sample struct {
	kept    []float64
	every   int
	skipped int
	n       int // total of the numbers
}

const mostKept = 1024

func (s *sample) add(v float64) {
	s.n++
	if s.skipped++; s.skipped < s.every {
		return
	}
	s.skipped = 0
	if s.kept = append(s.kept, v); len(s.kept) < mostKept {
		return
	}
	for i := range mostKept / 2 {
		s.kept[i] = s.kept[2*i]
	}
	s.kept, s.every = s.kept[:mostKept/2], 2*max(1, s.every)
}

// quantile returns a quantile of sorted numbers.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// A found is a rate, in units per second.
type found struct {
	rate, low, high float64
	spans           int
	spread          float64 // (high - low) / rate
	burst           float64 // 0 if unknown
	onsets          int     // number of onsets from which the burst is computed
}

// steady returns the rate of spans. It ignores spans below half of the highest rate: their throttles had another
// reason, or the full bucket lost units while there were no calls.
func steady(all []float64) (f found) {
	sorted := slices.Sorted(slices.Values(all))
	if len(sorted) == 0 {
		return f
	}
	from, _ := slices.BinarySearch(sorted, quantile(sorted, 0.95)/2)
	if sorted = sorted[from:]; len(sorted) < leastSpans {
		return f
	}
	f = found{low: quantile(sorted, 0.1), high: quantile(sorted, 0.9), rate: quantile(sorted, 0.75), spans: len(sorted)}
	if len(sorted) < 8 {
		f.rate = quantile(sorted, 0.5)
	}
	f.spread = (f.high - f.low) / max(f.rate, math.SmallestNonzeroFloat64)
	return f
}

const leastSpans = 3

// Spreads of rates between throttles.
const (
	steadySpread = 0.15 // good enough to stop looking for a better explanation
	usualSpread  = 0.45 // good enough to skip longer spans
	mostSpread   = 0.6  // the rate is not random
)

// A doubt is the reason for not finding a limit.
type doubt string

const (
	noDoubt doubt = ""
	quiet   doubt = "quiet"  // nothing was throttled
	few     doubt = "few"    // not enough data
	varied  doubt = "varied" // throttles occurred at all rates
	lower   doubt = "lower"  // throttles occurred at rates and after bursts that were accepted at other times
)

// find returns the rate that the calls show.
func (e *estimate) find() (best found, why doubt) {
	if e.throttles == 0 {
		return best, quiet
	}
	best.spread = math.Inf(1)
	for i := range e.spans {
		f := steady(e.spans[i].all.kept)
		if f.spans < leastSpans || f.spread >= best.spread {
			continue
		}
		best = f
		best.spans *= max(1, e.spans[i].all.every)
		if f.spread <= usualSpread {
			break
		}
	}
	switch {
	case best.spans == 0:
		return best, few
	case best.spread > mostSpread:
		return best, varied
	}
	b := e.grid.burst(best.rate)
	best.burst, best.onsets = b.level, b.n
	// A few throttles can have another reason. They are caused by the rate if they begin at the same level again and
	// again.
	if e.throttles < (e.throttles+e.taken)/100 && (b.n < 5 || b.n < b.all/4 || best.spread > 2*steadySpread) {
		return best, lower
	}
	return best, noDoubt
}
