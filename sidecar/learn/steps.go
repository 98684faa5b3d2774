package learn

import (
	"slices"
	"time"
)

// steps are what is known about a limit from steps of time. Bursts are shorter than steps.
type steps struct {
	begun, end       time.Time
	long             time.Duration
	taken, throttled float64
	tokens           float64
	dry              bool // the previous step was throttled and is adjacent
	calls, units     sample
	held, heldUnits  peak
	busy             float64
	inFlight         float64 // highest average of a step
	gaps             int
}

// throttledShare is the share of throttled attempts from which a step counts as being at the limit. A few throttles
// have other reasons.
const throttledShare = 0.01

func (t *steps) add(s Step) {
	seconds := s.Long.Seconds()
	if t.begun.IsZero() {
		t.begun = s.At
	} else if gap := s.At.Sub(t.end); gap != 0 {
		t.dry = false
		t.gaps++
	}
	t.end, t.long = s.At.Add(s.Long), s.Long
	t.taken, t.throttled, t.tokens, t.busy = t.taken+s.Taken, t.throttled+s.Throttled, t.tokens+s.Tokens, t.busy+s.Busy.Seconds()
	t.inFlight = max(t.inFlight, s.Busy.Seconds()/seconds)
	throttled := s.Throttled >= throttledShare*(s.Taken+s.Throttled) && s.Throttled > 0
	switch {
	case throttled && t.dry: // the bucket was empty at the beginning and at the end of the step
		t.calls.add(s.Taken / seconds)
		t.units.add(s.Tokens / seconds)
	case s.Throttled > 0:
	case s.Taken/seconds > t.held.rate:
		t.held, t.heldUnits = peak{s.Taken / seconds, s.At}, peak{s.Tokens / seconds, s.At}
	}
	t.dry = throttled
}

// find returns the rate that the steps show. units selects the rate of tokens.
func (t *steps) find(units bool) (f found, why doubt) {
	if t.throttled == 0 {
		return f, quiet
	}
	all := t.calls.kept
	if units {
		all = t.units.kept
	}
	if f = steady(all); f.spans < leastSpans || f.rate == 0 {
		return f, few
	}
	if f.spread > mostSpread {
		return f, varied
	}
	if share := t.throttled / (t.throttled + t.taken); !units && share < 0.01 && t.held.rate >= 0.99*f.rate {
		return f, lower
	}
	return f, noDoubt
}

func sortedNames[T any](of map[string]T) (all []string) {
	for name := range of {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
