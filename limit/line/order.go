package line

import (
	"cmp"
	"slices"
	"time"
)

// Priorities is how many there are: priority 0 goes before 1, and 1 before 2, each by its weight.
const Priorities = 3

// An order is who goes next of those in a line: start-time fair queueing (Goyal, Vin, Cheng:
// Start-time Fair Queueing, SIGCOMM 1996), once between the priorities and once between the
// flows of each. With one flow of one priority it is first come, first served.
//
// What is next in a line carries a start tag, in virtual time; the lowest goes, virtual
// time is its tag at least, and the tag of the next call of the same flow is
// later by the cost of the first over its weight. A priority that was away starts at the present
// virtual time and has saved nothing up; a flow that was away for so long that it
// could have made a call has saved up that one. Otherwise ten calls that come
// together, while another flow has all that it can get, would take more than twice
// as long as without it, for each would go after one of the other's. Tags are given
// when a call comes to the front of its flow, not when it enters: those who leave
// before have cost their flow nothing.
type order struct {
	virtual    int64
	priorities [Priorities]priority
	n          int
	strict     bool // a priority goes before all that come after it, whatever they have had
}

// An item is whatever shares something by weight: a priority, or a flow of a priority.
type item struct {
	start  int64 // tag of the next call
	served int64 // in the same measure, since it was away; who has had less goes first of equals
	n      int   // calls that wait
	cost   int64 // theirs, in nanoseconds
	units  int64 // and in units of what they wait for
}

// scale is how finely virtual time is divided: calls of 1 ns can have weights of
// up to 256 and still differ.
const scale = 1 << 8

// mostCost bounds what one call counts, so that tags do not overflow: 10,000 calls
// of an hour each are a year of waiting without a break.
const mostCost = time.Hour

func within(cost time.Duration) time.Duration { return min(max(cost, 1), mostCost) }

// price is what a call moves tags by.
func price(cost time.Duration, weight int) int64 {
	return max(1, int64(cost)*scale/int64(weight))
}

// wakes gives the tag to an item that begins to wait, and reports whether it was away.
func (i *item) wakes(virtual int64) (away bool) {
	if away = i.start < virtual; away {
		i.start, i.served = virtual, 0
	}
	return away
}

// serves charges an item, and refunds it if by is negative.
func (i *item) serves(by int64) {
	i.start += by
	i.served += by
}

func (i *item) before(o *item) int {
	return cmp.Or(cmp.Compare(i.start, o.start), cmp.Compare(i.served, o.served))
}

// add counts a call that begins to wait; n is -1 for one that waits no more.
func (i *item) add(n int, w *waiter) {
	i.n += n
	i.cost += int64(n) * int64(w.cost)
	i.units += int64(n) * w.units
}

// push puts a waiter into its flow.
func (o *order) push(w *waiter) {
	l := &o.priorities[w.call.Priority]
	if l.n == 0 {
		l.wakes(o.virtual)
	}
	l.push(w)
	o.n++
}

// remove takes a waiter out, wherever it stands.
func (o *order) remove(w *waiter) {
	o.priorities[w.call.Priority].remove(w)
	o.n--
}

// upTo returns how many calls of a priority and of all higher ones wait.
func (o *order) upTo(priority int) (n int) {
	for i := range o.priorities[:priority+1] {
		n += o.priorities[i].n
	}
	return n
}

// priority is the priority whose turn it is, the higher one of equals; nil if nobody waits.
func (o *order) priority() (best *priority) {
	for i := range o.priorities {
		if l := &o.priorities[i]; l.n > 0 && (best == nil || !o.strict && l.start < best.start) {
			best = l
		}
	}
	return best
}

// first is who goes next; nil if nobody waits.
func (o *order) first() *waiter {
	if l := o.priority(); l != nil {
		return l.waiting[0].calls.first
	}
	return nil
}

// pop takes out a call that goes; its flow and its priority pay for it.
func (o *order) pop(w *waiter, weights *[Priorities]int) {
	l, f := &o.priorities[w.call.Priority], w.flow
	o.virtual = max(o.virtual, l.start)
	l.virtual = max(l.virtual, f.start)
	tag, saved := f.start, f.saved
	w.paid, w.priorityPaid = price(w.cost, w.call.Weight), price(w.cost, weights[w.call.Priority])
	f.saved, f.last = 0, w.paid
	o.remove(w)
	l.charge(f, w.paid)
	l.serves(w.priorityPaid)
	l.went(w, tag+w.paid+saved)
}

// refund takes back what a call was charged that has not got what it went for.
func (o *order) refund(w *waiter) {
	l := &o.priorities[w.call.Priority]
	l.charge(w.flow, -w.paid)
	l.serves(-w.priorityPaid)
}

// cost is that of all who wait, and units the same in units.
func (o *order) cost() (sum time.Duration, units int64) {
	for i := range o.priorities {
		sum += time.Duration(o.priorities[i].cost)
		units += o.priorities[i].units
	}
	return sum, units
}

// inPriorities adds those who wait, one priority after the other.
func (o *order) inPriorities(to []*waiter) []*waiter {
	for i := range o.priorities {
		for _, f := range o.priorities[i].waiting {
			for w := f.calls.first; w != nil; w = w.next {
				to = append(to, w)
			}
		}
	}
	return to
}

// all are those who wait, in the order in which they came.
func (o *order) all() []*waiter {
	all := o.inPriorities(nil)
	slices.SortFunc(all, byArrival)
	return all
}

func byArrival(a, b *waiter) int { return cmp.Compare(a.call.Came, b.call.Came) }
