package weir

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// Counts are what happened to an upstream's calls since it was made, by what observers tell apart:
// names that policies declare, and words of weir's own. A call adds to cells of its core, which its
// plan has at hand; who reads adds them up. Counts outlive every Set and never go back. They are
// safe for concurrent use.
type Counts struct {
	// The lock is held to find an operation, not to count: a plan has what it counts in at hand.
	upstream string
	mu       sync.Mutex
	known    map[string]*tallies // by operation
}

// Upstream is the name of the upstream.
func (c *Counts) Upstream() string { return c.upstream }

// A What says what a Count counts.
type What uint8

const (
	Decisions What = iota // attempts decided on, by limit and word: DecidedAllowed, DecidedWaited, or a refusal's reason
	Waits                 // of the same, how long those waited that did, by limit
	Lates                 // how much later than its turn each of those woke, by limit
	Attempts              // attempts that ended, and how long they took, by class
	Calls                 // calls that ended, and how long they took, by result
)

// Words of a Count besides the reasons of refusals and the classes of outcomes.
const (
	// Of Decisions.
	DecidedAllowed = "allowed" // at once
	DecidedWaited  = "waited"  // allowed, after a wait
	DecidedOther   = "other"   // refused for what is none of Reasons
	// Of Attempts and Calls.
	EndedUnsent = "unsent"  // class of attempts, and result of calls, that were rejected on this side: nothing was sent
	CallRefused = "refused" // result of calls for which there was no attempt
)

// A Count is one figure of Counts. Parts that its What is not told apart by are empty.
type Count struct {
	What      What
	Operation string
	Limit     string
	Word      string          // the decision, class or result
	N         uint64          // how many there were
	Took      *counter.Spread // how long they took, or waited; nil for Decisions
}

// All are the figures, those that are 0 among them, in no order. Calls go on meanwhile: each figure is read
// once, and two of them may be of different instants.
func (c *Counts) All() iter.Seq[Count] {
	return func(yield func(Count) bool) {
		c.mu.Lock()
		all := slices.Collect(maps.Values(c.known))
		c.mu.Unlock()
		for _, t := range all {
			for _, n := range t.figures() {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// figures are those of an operation.
func (t *tallies) figures() (all []Count) {
	allowed, classes, results := uint64(0), [unsentPlace + 1]counter.Spread{}, [refusedPlace + 1]counter.Spread{}
	for cell := range t.cells.All() {
		allowed += cell.allowed.Load()
		for i := range classes {
			classes[i].Add(cell.classes[i].Load())
		}
		for i := range results {
			results[i].Add(cell.results[i].Load())
		}
	}
	all = append(all, Count{What: Decisions, Operation: t.operation, Word: DecidedAllowed, N: allowed})
	for i := range classes {
		all = append(all, timed(Attempts, t.operation, endings[i], &classes[i]))
	}
	for i := range results {
		all = append(all, timed(Calls, t.operation, endings[i], &results[i]))
	}
	t.mu.Lock()
	limits := maps.Clone(t.limits)
	t.mu.Unlock()
	for name, l := range limits {
		all = append(all, l.figures(t.operation, name)...)
	}
	return all
}

// figures are those of a limit, for an operation.
func (l *limitTally) figures(operation, limit string) (all []Count) {
	var by [len(Reasons) + 1]uint64
	for cell := range l.refused.All() {
		for i := range by {
			by[i] += cell.by[i].Load()
		}
	}
	var waits, lates counter.Spread
	waits.Add(&l.waits)
	lates.Add(&l.lates)
	all = append(all, timed(Waits, operation, "", &waits), timed(Lates, operation, "", &lates),
		Count{What: Decisions, Operation: operation, Word: DecidedWaited, N: l.waited.Load()})
	for i, n := range by {
		all = append(all, Count{What: Decisions, Operation: operation, Word: reasonWord(i), N: n})
	}
	for i := range all {
		all[i].Limit = limit
	}
	return all
}

// timed is a figure of what takes time: as many as have been timed.
func timed(what What, operation, word string, took *counter.Spread) Count {
	return Count{What: what, Operation: operation, Word: word, N: took.Count, Took: took}
}

// reasonWord is the word for what is counted at a place of refusals.
func reasonWord(i int) string {
	if i < len(Reasons) {
		return string(Reasons[i])
	}
	return DecidedOther
}

// Places behind those of the classes in what is counted by class or result, and all their words.
const (
	unsentPlace  = len(outcome.Classes)
	refusedPlace = unsentPlace + 1
)

// endings are the words of those places: classes, then the two that are none.
var endings = func() (words [refusedPlace + 1]string) {
	for i, c := range outcome.Classes {
		words[i] = c.String()
	}
	words[unsentPlace], words[refusedPlace] = EndedUnsent, CallRefused
	return words
}()
