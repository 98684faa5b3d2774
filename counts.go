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

// Counts are what happened to an upstream's calls since it was made, by what observers tell apart:
// names that policies declare, and words of weir's own. A call adds to cells of its core, which its
// plan has at hand; who reads adds them up. Counts outlive every Set and never go back. They are
// safe for concurrent use.
type Counts struct {
	// The lock is held to find an operation, not to count: a plan has what it counts in at hand. Those of tallies are taken under it.
	upstream string
	mu       sync.Mutex
	known    map[string]*tallies // by operation

	broke atomic.Uint64 // times that a breaker opened that was closed
	last  lastError
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
	Faults                // attempts that ended with an error, by outcome.Fault
	Retries               // of Attempts, those that were not the first of their call, and how long they took
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
func (c *Counts) All() iter.Seq[Count] { return c.each((*tallies).figures) }

// Decided are those of Decisions. They cost a small part of what All does.
func (c *Counts) Decided() iter.Seq[Count] { return c.each((*tallies).decided) }

// Sum is how many attempts were allowed at once, and how many waited or were refused. It costs a few loads for each limit, and no memory.
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

// held is how many attempts waited for the limit, or were refused.
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

// figures are those of an operation.
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

// faulty are the figures of errors: what was not rejected and has failed passes by itself.
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

// known are the limits that made attempts wait, or refused them.
func (t *tallies) known() map[string]*limitTally {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.limits)
}

// decided are the figures of the operation's decisions.
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
