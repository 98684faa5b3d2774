package line

import (
	"cmp"
	"slices"
	"time"
)

// Priorities is the number of priorities. Priority 0 is the highest. They share by weight.
const Priorities = 3

// An order determines the next call of a queue by start-time fair queueing (Goyal, Vin, Cheng: Start-time Fair
// Queueing, SIGCOMM 1996), first between the priorities and then between the flows of each. With one flow of one
// priority it is first come, first served.
//
// The next call of each flow has a start tag in virtual time, and the lowest tag goes. Virtual time is then at least
// its tag. The tag of the flow's next call is later by the first call's cost divided by its weight. A priority that
// was idle starts at the present virtual time, without credit. A flow that was idle for the time of a call has credit
// for one call. Otherwise ten calls that come together, while another flow uses all that it can get, would take more
// than twice as long as without it, because each would go after one of the other flow's. A call gets its tag at the
// head of its flow, not when it enters, so that a call that leaves earlier costs its flow nothing.
type order struct {
	virtual    int64
	priorities [Priorities]priority
	n          int
	strict     bool // each priority goes before all lower ones, whatever they have had
}

// An item shares something by weight: a priority, or a flow of a priority.
type item struct {
	start  int64 // tag of the next call
	served int64 // total of the tag's increments since it was idle; of equal tags the item with less goes first
	n      int   // number of waiting calls
	cost   int64 // their cost in nanoseconds
	units  int64 // their cost in units
}

// scale is the resolution of virtual time: calls of 1 ns with weights of up to 256 still differ.
const scale = 1 << 8

// mostCost bounds the cost of one call, so that tags do not overflow: 10,000 calls of an hour each are a year of
// waiting.
const mostCost = time.Hour

func within(cost time.Duration) time.Duration { return min(max(cost, 1), mostCost) }

// price returns by how much a call increases tags.
func price(cost time.Duration, weight int) int64 {
	return max(1, int64(cost)*scale/int64(weight))
}

// wakes sets the tag of an item that begins to wait, and reports whether it was idle.
func (i *item) wakes(virtual int64) (away bool) {
	if away = i.start < virtual; away {
		i.start, i.served = virtual, 0
	}
	return away
}

// serves charges an item, or refunds it if by is negative.
func (i *item) serves(by int64) {
	i.start += by
	i.served += by
}

func (i *item) before(o *item) int {
	return cmp.Or(cmp.Compare(i.start, o.start), cmp.Compare(i.served, o.served))
}

// add counts a call that begins to wait, or with n = -1 a call that stops waiting.
func (i *item) add(n int, w *waiter) {
	i.n += n
	i.cost += int64(n) * int64(w.cost)
	i.units += int64(n) * w.units
}

// push adds a waiter to its flow.
func (o *order) push(w *waiter) {
	l := &o.priorities[w.call.Priority]
	if l.n == 0 {
		l.wakes(o.virtual)
	}
	l.push(w)
	o.n++
}

// remove removes a waiter from any position.
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

// priority returns the priority whose turn it is, the higher one of equals; nil if no call waits.
func (o *order) priority() (best *priority) {
	for i := range o.priorities {
		if l := &o.priorities[i]; l.n > 0 && (best == nil || !o.strict && l.start < best.start) {
			best = l
		}
	}
	return best
}

// first returns the next call; nil if no call waits.
func (o *order) first() *waiter {
	if l := o.priority(); l != nil {
		return l.waiting[0].calls.first
	}
	return nil
}

// pop removes a call that goes, and charges its flow and priority.
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

// refund returns the charge for a call that did not get what it asked for.
func (o *order) refund(w *waiter) {
	l := &o.priorities[w.call.Priority]
	l.charge(w.flow, -w.paid)
	l.serves(-w.priorityPaid)
}

// cost returns the cost of all waiting calls, in time and in units.
func (o *order) cost() (sum time.Duration, units int64) {
	for i := range o.priorities {
		sum += time.Duration(o.priorities[i].cost)
		units += o.priorities[i].units
	}
	return sum, units
}

// inPriorities appends the waiting calls, by priority.
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

// all returns the waiting calls in order of arrival.
func (o *order) all() []*waiter {
	all := o.inPriorities(nil)
	slices.SortFunc(all, byArrival)
	return all
}

func byArrival(a, b *waiter) int { return cmp.Compare(a.call.Came, b.call.Came) }
