package learn

import (
	"math"
	"slices"
	"time"
)

// An estimate is what is known of the limit of some calls, of which each has its own line. The zero estimate knows nothing.
type estimate struct {
	begun, last int64   // of the calls
	taken       int64   // calls that were not throttled
	amount      float64 // what these used, in the unit that is counted
	throttles   int64
	spans       [len(lengths)]spans
	grid        *grid // nil until the first call
	held        held
	took        took
	inDry       [2]float64 // calls while others were throttled: taken, throttled
}

// lengths are the least that a span between two throttles has. Short ones tell a bucket from what varies; windows of
// a minute show in the long ones alone.
var lengths = [...]time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}

// leastCalls are those of a span: a call more or less is no more than 2.5% of it.
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

// take counts what was used.
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

// rest forgets what is under way, as the clock was set.
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

// spans are rates between throttles.
type spans struct {
	since  int64 // the throttle that began this one; 0 for none
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

// A sample is some of many numbers: every second, every fourth and so on, as there are more of them.
type sample struct {
	kept    []float64
	every   int
	skipped int
	n       int // all there were
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

// quantile is of sorted numbers.
func quantile(sorted []float64, q float64) float64 {
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// A found is a rate, in units a second.
type found struct {
	rate, low, high float64
	spans           int
	spread          float64 // (high - low) / rate
	burst           float64 // 0 if that is not known
	onsets          int     // of which the burst is made
}

// steady is the rate in spans. Those of less than half of the highest are left out: throttles that came then had
// another reason, or the bucket ran over while callers stayed away.
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
	steadySpread = 0.15 // nothing explains it better
	usualSpread  = 0.45 // longer spans need not be looked at
	mostSpread   = 0.6  // there is a rate at all
)

// A doubt is why nothing is found.
type doubt string

const (
	noDoubt doubt = ""
	quiet   doubt = "quiet"  // nothing was throttled
	few     doubt = "few"    // there is not enough of it
	varied  doubt = "varied" // throttles came at all rates
	lower   doubt = "lower"  // throttles came at rates and after bursts that others went with
)

// find is what calls tell.
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
	// Few throttles can come from something else. They come from the rate if they begin at one level again and again.
	if e.throttles < (e.throttles+e.taken)/100 && (b.n < 5 || b.n < b.all/4 || best.spread > 2*steadySpread) {
		return best, lower
	}
	return best, noDoubt
}
