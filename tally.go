package weir

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A tallies is what is counted of an operation. It stays when plans are made anew, and nothing that
// was counted is ever taken back: what observers read only grows.
type tallies struct {
	operation string
	cells     counter.Each[tally]
	mu        sync.Mutex
	limits    map[string]*limitTally // by the limit that made attempts wait, or said no; "" if none did
}

// A tally is what one core has counted of an operation. Nobody else writes it as a rule, so that a
// call adds to it without waiting for other cores; it is atomic as a goroutine may change cores
// between two steps. Figures that are read while calls go on may each be of another instant.
type tally struct {
	allowed atomic.Uint64   // at once
	waited  atomic.Uint64   // allowed, after a wait
	began   [8]atomic.Int64 // instants of the latest attempts, a ring
	amounts [8]atomic.Int64 // units that each of them took, of the limit of which it took most
	classes [unsentPlace + 1]atomic.Pointer[counter.Histogram]
	retries [unsentPlace + 1]atomic.Pointer[counter.Histogram] // of classes, those that were not the first of their call
	results [refusedPlace + 1]atomic.Pointer[counter.Histogram]
	faults  [len(outcome.Faults) + 1]atomic.Uint64 // of attempts that were rejected; those of others follow from their classes
	_       counter.Pad
}

// A limitTally is what is counted of an operation by a limit. Attempts that waited are in no
// hurry: they share a cell. Its histograms are of how long they waited, and of how much later
// than their turns they woke.
type limitTally struct {
	waited       atomic.Uint64
	refused      counter.Each[refusals]
	waits, lates counter.Histogram
	telling      [len(Reasons) + 1]telling // of refusals, as refusals has them
}

// A telling is what is known of those who hear of refusals for one reason. It is written for those of which is told.
type telling struct {
	quiet  atomic.Int64  // the instant until which nobody need hear of any
	untold atomic.Uint64 // how many those who heard of some were told not to have heard of
}

// refusals are how many attempts one core has refused, in the order of Reasons, and for others; and of how many of them was told.
type refusals struct {
	by, told [len(Reasons) + 1]atomic.Uint64
	_        counter.Pad
}

// of is what is counted of an operation; nil if nothing is.
func (c *Counts) of(operation string) *tallies {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.known[operation]
	if t == nil {
		t = &tallies{operation: operation, cells: counter.NewEach[tally](), limits: make(map[string]*limitTally)}
		c.known[operation] = t
	}
	return t
}

// of is what is counted by a limit.
func (t *tallies) of(limit string) *limitTally {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.limits[limit]
	if l == nil {
		l = &limitTally{refused: counter.NewEach[refusals]()}
		t.limits[limit] = l
	}
	return l
}

// tallyBy is that of the limit of a charge, of none for the zero Charge.
func (p *plan) tallyBy(c limit.Charge) *limitTally {
	if c.Registry == nil {
		return p.none
	}
	if l := p.tallyOf(c.Registry); l != nil {
		return l
	}
	return p.tallies.of(c.Registry.Limit().Name) // the policy is not that any more under which the call began
}

// tallyOf is that of one of the plan's own limits; nil for another.
func (p *plan) tallyOf(r *limit.Registry) *limitTally {
	for i := range p.limits {
		if p.limits[i].registry == r {
			return p.limits[i].tally
		}
	}
	return nil
}

// tally is the cell of this core, and its number; nil, and a number below 0, if nothing is counted.
func (p *plan) tally() (*tally, int) {
	if p.tallies == nil {
		return nil, -1
	}
	cell := counter.Pick()
	return p.tallies.cells.At(cell), cell
}

// begins counts an attempt that begins now, and notes when: the last eight of each core are kept for
// what is told of a Violation.
func (t *tally) begins(now, waited time.Duration, amount int64) {
	var n uint64
	if waited == 0 {
		n = t.allowed.Add(1) + t.waited.Load()
	} else {
		n = t.waited.Add(1) + t.allowed.Load()
	}
	// The cells of several cores each have the latest of their own: Counts.ago puts them together.
	t.began[n%uint64(len(t.began))].Store(int64(now))
	t.amounts[n%uint64(len(t.began))].Store(amount)
}

// refuses counts a refusal in the cell of a number, and reports whether it is to be told of.
func (l *limitTally) refuses(number int, now time.Duration, why Reason) (tell bool) {
	i, cell := reasonPlace(why), l.refused.At(number)
	if tell = int64(now) >= l.telling[i].quiet.Load(); tell {
		cell.told[i].Add(1) // before it is counted: what is on its way between the two must not pass for untold
	}
	cell.by[i].Add(1)
	return tell
}

// untold is how many refusals for the reason at a place were not told of, beyond those of which that has been said.
func (l *limitTally) untold(i int) uint64 {
	all := uint64(0)
	for cell := range l.refused.All() {
		all += cell.by[i].Load()
	}
	for cell := range l.refused.All() { // later than by, so that it is no less than what by has of it
		all -= cell.told[i].Load()
	}
	said := &l.telling[i].untold
	before := said.Load()
	if n := int64(all - before); n > 0 && said.CompareAndSwap(before, all) {
		return uint64(n)
	}
	return 0
}

// reasonPlace is where refusals for a reason are counted.
func reasonPlace(why Reason) int {
	for i := range Reasons {
		if Reasons[i] == why {
			return i
		}
	}
	return len(Reasons)
}

// waitedFor counts a wait, if there was one.
func (l *limitTally) waitedFor(waited, late time.Duration) {
	if waited > 0 {
		l.waits.Observe(waited)
		l.lates.Observe(late)
	}
}

// ends counts the end of an attempt by its class. One that was rejected on this side, before it was
// sent, is apart: the upstream has nothing to do with it. again says that it was not the first of its call.
func (t *tally) ends(o *outcome.Outcome, took time.Duration, again bool) {
	i := place(o.Class)
	if o.Class == outcome.Rejected {
		t.faults[o.Fault()].Add(1)
	}
	if o.Class == outcome.Rejected && o.Unsent {
		i = unsentPlace
	}
	counter.Made(&t.classes[i]).Observe(took)
	if again {
		counter.Made(&t.retries[i]).Observe(took)
	}
}

// done counts the end of a call in t, or in another cell if it is nil: the call has asked for no permit.
func (p *plan) done(t *tally, d *Done) {
	if t == nil {
		t, _ = p.tally()
	}
	if t == nil {
		return
	}
	// A call without any attempt was refused, unless its caller left while it waited.
	i := place(d.Class)
	switch {
	case d.Refused && d.Attempts == 0 && d.Class != outcome.Canceled:
		i = refusedPlace
	case d.Unsent:
		i = unsentPlace
	}
	counter.Made(&t.results[i]).Observe(d.Took)
}

// place is where a class is counted.
func place(c outcome.Class) int {
	if int(c) < len(outcome.Classes) {
		return int(c)
	}
	return int(outcome.Unknown)
}

// underWay is how many attempts have begun and not ended.
func (c *Counts) underWay() (n int64) {
	for t := range c.cells {
		n += int64(t.allowed.Load() + t.waited.Load())
		for i := range t.classes {
			if h := t.classes[i].Load(); h != nil {
				n -= int64(h.Count())
			}
		}
	}
	return max(0, n)
}

// ago returns how long ago the latest attempts began and the units that each of them took, the latest first.
func (c *Counts) ago(now time.Duration) (all []time.Duration, amounts []int64) {
	type attempt struct {
		ago    time.Duration
		amount int64
	}
	var latest []attempt
	for t := range c.cells {
		for i := range min(t.allowed.Load()+t.waited.Load(), uint64(len(t.began))) {
			at := (i + 1) % uint64(len(t.began))
			latest = append(latest, attempt{max(0, now-time.Duration(t.began[at].Load())), t.amounts[at].Load()})
		}
	}
	slices.SortStableFunc(latest, func(a, b attempt) int { return cmp.Compare(a.ago, b.ago) })
	for _, a := range latest[:min(len(latest), len(tally{}.began))] {
		all, amounts = append(all, a.ago), append(amounts, a.amount)
	}
	return all, amounts
}

// cells are those of all operations.
func (c *Counts) cells(yield func(*tally) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.known {
		for cell := range t.cells.All() {
			if !yield(cell) {
				return
			}
		}
	}
}
