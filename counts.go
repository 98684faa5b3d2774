package weir

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// Counts are the counters of an upstream's calls since it was made. Their labels are names that policies declare and
// constants of weir. A call adds to the counters of its CPU core. A reader adds up the counters of all cores.
// Counts outlive every Set and never decrease. They are safe for concurrent use.
type Counts struct {
	// mu is held to find an operation, not to count. The locks of tallies are taken while it is held.
	upstream string
	mu       sync.Mutex
	known    map[string]*tallies // by operation

	broke atomic.Uint64 // times that a closed breaker opened
	last  lastError
}

// Upstream returns the name of the upstream.
func (c *Counts) Upstream() string { return c.upstream }

// A What states what a Count counts.
type What uint8

const (
	Decisions What = iota // decisions about attempts, by limit and Word: DecidedAllowed, DecidedWaited or the reason of a refusal
	Waits                 // waits of these attempts, by limit
	Lates                 // how much later than their turn they woke, by limit
	Attempts              // ended attempts and their durations, by class
	Calls                 // ended calls and their durations, by result
	Faults                // attempts that ended with an error, by outcome.Fault
	Retries               // those of Attempts that were not the first of their call
)

// Words of a Count, in addition to the reasons of refusals and the classes of outcomes.
const (
	// For Decisions.
	DecidedAllowed = "allowed" // without a wait
	DecidedWaited  = "waited"  // allowed, after a wait
	DecidedOther   = "other"   // refused for a reason that is not in Reasons
	// For Attempts and Calls.
	EndedUnsent = "unsent"  // class of attempts and result of calls that were rejected locally: nothing was sent
	CallRefused = "refused" // result of calls without an attempt
)

// A Count is one figure of Counts. Fields that do not apply to its What are empty.
type Count struct {
	What      What
	Operation string
	Limit     string
	Word      string          // the decision, class or result
	N         uint64          // the number
	Took      *counter.Spread // durations or waits; nil for Decisions
}

// All yields all figures, including those that are 0, in no order. Calls continue meanwhile: each figure is read
// once, and two of them may be from different instants.
func (c *Counts) All() iter.Seq[Count] { return c.each((*tallies).figures) }

// Decided yields the figures of Decisions. It costs much less than All.
func (c *Counts) Decided() iter.Seq[Count] { return c.each((*tallies).decided) }

// Sum returns how many attempts were allowed without a wait, and how many waited or were refused. It does not
// allocate, and costs a few loads for each limit.
func (c *Counts) Sum() (allowed, held uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.known {
		for cell := range t.cells.All() {
			allowed += cell.allowed.Load()
		}
		t.mu.Lock()
		for _, l := range t.limits {
			held += l.held()
		}
		t.mu.Unlock()
	}
	return allowed, held
}

// held returns how many attempts waited for the limit or were refused.
func (l *limitTally) held() uint64 {
	n := l.waited.Load()
	for cell := range l.refused.All() {
		for i := range cell.by {
			n += cell.by[i].Load()
		}
	}
	return n
}

func (c *Counts) each(of func(*tallies) []Count) iter.Seq[Count] {
	return func(yield func(Count) bool) {
		c.mu.Lock()
		all := slices.Collect(maps.Values(c.known))
		c.mu.Unlock()
		for _, t := range all {
			for _, n := range of(t) {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// figures returns all figures of an operation.
func (t *tallies) figures() []Count {
	classes, results, retries := [unsentPlace + 1]counter.Spread{}, [refusedPlace + 1]counter.Spread{}, [unsentPlace + 1]counter.Spread{}
	for cell := range t.cells.All() {
		for i := range classes {
			classes[i].Add(cell.classes[i].Load())
			retries[i].Add(cell.retries[i].Load())
		}
		for i := range results {
			results[i].Add(cell.results[i].Load())
		}
	}
	all := append(t.decided(), t.faulty(&classes)...)
	for i := range classes {
		all = append(all, timed(Attempts, t.operation, endings[i], &classes[i]), timed(Retries, t.operation, endings[i], &retries[i]))
	}
	for i := range results {
		all = append(all, timed(Calls, t.operation, endings[i], &results[i]))
	}
	for name, l := range t.known() {
		var waits, lates counter.Spread
		waits.Add(&l.waits)
		lates.Add(&l.lates)
		for _, n := range [...]Count{timed(Waits, t.operation, "", &waits), timed(Lates, t.operation, "", &lates)} {
			n.Limit = name
			all = append(all, n)
		}
	}
	return all
}

// faulty returns the figures of errors. Errors other than rejections are transient.
func (t *tallies) faulty(classes *[unsentPlace + 1]counter.Spread) (all []Count) {
	for _, f := range outcome.Faults {
		n := uint64(0)
		for cell := range t.cells.All() {
			n += cell.faults[f].Load()
		}
		if f == outcome.Transient {
			n += classes[outcome.Throttled].Count + classes[outcome.Failed].Count + classes[outcome.Unknown].Count
		}
		all = append(all, Count{What: Faults, Operation: t.operation, Word: f.String(), N: n})
	}
	return all
}

// known returns the limits that made attempts wait or refused them.
func (t *tallies) known() map[string]*limitTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.limits)
}

// decided returns the figures of the operation's decisions.
func (t *tallies) decided() []Count {
	allowed := uint64(0)
	for cell := range t.cells.All() {
		allowed += cell.allowed.Load()
	}
	all := []Count{{What: Decisions, Operation: t.operation, Word: DecidedAllowed, N: allowed}}
	for name, l := range t.known() {
		var by [len(Reasons) + 1]uint64
		for cell := range l.refused.All() {
			for i := range by {
				by[i] += cell.by[i].Load()
			}
		}
		all = append(all, Count{What: Decisions, Operation: t.operation, Limit: name, Word: DecidedWaited, N: l.waited.Load()})
		for i, n := range by {
			all = append(all, Count{What: Decisions, Operation: t.operation, Limit: name, Word: reasonWord(i), N: n})
		}
	}
	return all
}

// timed returns a figure with durations. Its number is that of the durations.
func timed(what What, operation, word string, took *counter.Spread) Count {
	return Count{What: what, Operation: operation, Word: word, N: took.Count, Took: took}
}

// reasonWord returns the word of a refusal counter.
func reasonWord(i int) string {
	if i < len(Reasons) {
		return string(Reasons[i])
	}
	return DecidedOther
}

// Indexes after the classes in counters by class or result.
const (
	unsentPlace  = len(outcome.Classes)
	refusedPlace = unsentPlace + 1
)

// endings are the words of these indexes.
var endings = func() (words [refusedPlace + 1]string) {
	for i, c := range outcome.Classes {
		words[i] = c.String()
	}
	words[unsentPlace], words[refusedPlace] = EndedUnsent, CallRefused
	return words
}()
