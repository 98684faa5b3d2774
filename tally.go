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

// A tallies has the counters of an operation. It outlives plans, and its counters never decrease.
type tallies struct {
	operation string
	cells     counter.Each[tally]
	mu        sync.Mutex
	limits    map[string]*limitTally // by the limit that made attempts wait or refused them; "" if none
}

// A tally has the counters of an operation on one core. Usually only that core writes it, so that a call does not
// wait for others. It is atomic because a goroutine may change cores between two steps. Figures that are read during
// calls may be from different instants.
type tally struct {
	allowed atomic.Uint64   // without a wait
	waited  atomic.Uint64   // allowed, after a wait
	began   [8]atomic.Int64 // instants of the latest attempts, as a ring
	amounts [8]atomic.Int64 // units that each of them took, from the limit from which it took most
	classes [unsentPlace + 1]atomic.Pointer[counter.Histogram]
	retries [unsentPlace + 1]atomic.Pointer[counter.Histogram] // of classes, those that were not the first of their call
	results [refusedPlace + 1]atomic.Pointer[counter.Histogram]
	faults  [len(outcome.Faults) + 1]atomic.Uint64 // of rejected attempts; those of other attempts follow from their classes
	_       counter.Pad
}

// A limitTally has the counters of an operation for one limit. Attempts that waited share a cell, because they are
// not urgent. The histograms are of the waits, and of how much later than their turns attempts woke.
type limitTally struct {
	waited       atomic.Uint64
	refused      counter.Each[refusals]
	waits, lates counter.Histogram
	telling      [len(Reasons) + 1]telling // by reason, in the order of refused
}

// A telling is the state of the suppression of refusals for one reason. It is written only when a refusal is
// reported.
type telling struct {
	quiet  atomic.Int64  // the instant until which refusals are suppressed
	untold atomic.Uint64 // number of suppressed refusals that were included in reports
}

// refusals counts the attempts that one core has refused, by the order of Reasons and for others, and how many were
// reported.
type refusals struct {
	by, told [len(Reasons) + 1]atomic.Uint64
	_        counter.Pad
}

// of returns the counters of an operation; nil if calls are not counted.
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

// of returns the counters for a limit.
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

// tallyBy returns the counters for the limit of a charge, or those without a limit for the zero Charge.
func (p *plan) tallyBy(c limit.Charge) *limitTally {
	if c.Registry == nil {
		return p.none
	}
	if l := p.tallyOf(c.Registry); l != nil {
		return l
	}
	return p.tallies.of(c.Registry.Limit().Name) // the call began under an older policy
}

// tallyOf returns the counters for one of the plan's limits; nil for another limit.
func (p *plan) tallyOf(r *limit.Registry) *limitTally {
	for i := range p.limits {
		if p.limits[i].registry == r {
			return p.limits[i].tally
		}
	}
	return nil
}

// tally returns the cell of this core and its index; nil and a negative index if calls are not counted.
func (p *plan) tally() (*tally, int) {
	if p.tallies == nil {
		return nil, -1
	}
	cell := counter.Pick()
	return p.tallies.cells.At(cell), cell
}

// begins counts an attempt that begins now. Each core keeps the instants of its last eight for events of a Violation.
func (t *tally) begins(now, waited time.Duration, amount int64) {
	var n uint64
	if waited == 0 {
		n = t.allowed.Add(1) + t.waited.Load()
	} else {
		n = t.waited.Add(1) + t.allowed.Load()
	}
	// Each core's cell has its own latest attempts. Counts.ago merges them.
	t.began[n%uint64(len(t.began))].Store(int64(now))
	t.amounts[n%uint64(len(t.began))].Store(amount)
}

// refuses counts a refusal in the cell with an index, and returns whether to report it.
func (l *limitTally) refuses(number int, now time.Duration, why Reason) (tell bool) {
	i, cell := reasonPlace(why), l.refused.At(number)
	if tell = int64(now) >= l.telling[i].quiet.Load(); tell {
		cell.told[i].Add(1) // first, so that a refusal between the two counters does not look suppressed
	}
	cell.by[i].Add(1)
	return tell
}

// untold returns how many refusals for a reason were suppressed since the last report.
func (l *limitTally) untold(i int) uint64 {
	all := uint64(0)
	for cell := range l.refused.All() {
		all += cell.by[i].Load()
	}
	for cell := range l.refused.All() { // later than by, so that it is not less than what by has counted of it
		all -= cell.told[i].Load()
	}
	said := &l.telling[i].untold
	before := said.Load()
	if n := int64(all - before); n > 0 && said.CompareAndSwap(before, all) {
		return uint64(n)
	}
	return 0
}

// reasonPlace returns the index of a reason.
func reasonPlace(why Reason) int {
	for i := range Reasons {
		if Reasons[i] == why {
			return i
		}
	}
	return len(Reasons)
}

// waitedFor counts a wait, unless it is 0.
func (l *limitTally) waitedFor(waited, late time.Duration) {
	if waited > 0 {
		l.waits.Observe(waited)
		l.lates.Observe(late)
	}
}

// ends counts the end of an attempt by its class. An attempt that was rejected locally before it was sent counts
// separately. again reports that it was not the first of its call.
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

// done counts the end of a call in t. t is nil if the call has asked for no permit.
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

// place returns the index of a class.
func place(c outcome.Class) int {
	if int(c) < len(outcome.Classes) {
		return int(c)
	}
	return int(outcome.Unknown)
}

// underWay returns how many attempts are in flight.
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

// cells yields the cells of all operations.
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
