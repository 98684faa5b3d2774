package line

import (
	"math"
	"time"
)

// A place is computed from virtual time, without simulating the queue: every call that starts before a call's tag
// goes before it. It is an estimate if flows of other weights come and go.

// How many flows are examined, so that computing a place takes some microseconds at most. The other flows are assumed
// to be like them.
const (
	lookedAt = 256  // for a call that enters
	allFlows = 1024 // for a call whose time is up
	someOf   = 32   // for each of many calls that leave together
)

// place returns the position that a call has, or would have if it came now, in a flow that may be nil. It examines at
// most flows flows. The first call of the queue is counted separately, as if it had gone, because only the call
// itself can go before it.
func (l *Line) place(w *waiter, f *flow, flows int) Place {
	v := l.seen()
	before, cost, units, waiting := w.before(f)
	p := Place{Waiting: l.order.n, Due: l.due}
	if !waiting {
		p.Waiting++
	}
	if v.head == nil || v.head == w {
		p.Place = 1
		return p
	}
	if v.head.flow == f {
		before, cost = before-1, cost-int64(v.head.cost)
	} else {
		units += v.head.units
	}
	at, served := v.tag(w, f)
	n, sum := v.others(w, f, float64(at)+float64(cost)*scale/float64(w.call.Weight), served, flows)
	n, sum = n+before, sum+cost
	mine, own := cost, v.priority(w.call.Priority)
	start := max(own.start, v.virtual)
	then := float64(start) + float64(sum)*scale/float64(v.weights[w.call.Priority])
	for i := range l.order.priorities {
		if o := v.priority(i); i != w.call.Priority && o.n > 0 {
			a, b := o.ahead(then, v.weights[i], i < w.call.Priority)
			n, sum = n+a, sum+b
		}
	}
	p.Units = units + v.unitsOf(sum-mine, f)
	if p.Place = min(n+2, p.Waiting); n == 0 && v.precedes(w, start, at, served) {
		p.Place, p.Due, p.Units = 1, max(0, p.Due-v.head.cost), 0
	}
	return p
}

// unitsOf returns the units of calls of other flows than own whose cost is sum, without the head.
func (v *seen) unitsOf(sum int64, own *flow) int64 {
	cost, units := v.cost()
	if own != nil {
		cost, units = cost-time.Duration(own.cost), units-own.units
	}
	if v.head.flow != own {
		cost, units = cost-v.head.cost, units-v.head.units
	}
	if sum >= int64(cost) {
		return max(0, units)
	}
	return int64(float64(units) * float64(sum) / float64(cost))
}

// Before returns the sum of of over the calls that go before a call in a queue by priority, whether the call still
// waits there or not. It examines at most lookedAt calls and assumes that the rest are like them.
func (l *Line) Before(c *Call, of func(Asker) int64) (sum int64) {
	if l.Empty() {
		return 0
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	n, all := 0, 0
	for i := range l.order.priorities[:c.Priority+1] {
		for _, f := range l.order.priorities[i].waiting {
			before := f.n
			if i == c.Priority {
				before = f.earlier(c.Came)
			}
			all += before
			for w := f.calls.first; before > 0 && n < lookedAt; w, before, n = w.next, before-1, n+1 {
				sum += of(w.call.Asker)
			}
		}
	}
	if all > n {
		sum = int64(min(float64(sum)/float64(n)*float64(all), math.MaxInt64/2))
	}
	return sum
}

// earlier returns how many calls of a flow came before a call. Beyond lookedAt it assumes an even distribution.
func (f *flow) earlier(came uint64) (n int) {
	for w := f.calls.first; w != nil && w.call.Came < came; w = w.next {
		if n++; n == lookedAt {
			first, last := f.calls.first.call.Came, f.calls.last.call.Came
			return max(n, int(float64(f.n)*min(1, float64(came-first)/float64(last-first))))
		}
	}
	return n
}

// mostBefore is how many earlier calls are counted one by one. Beyond that, an even distribution is assumed: ten
// thousand calls whose time is up together must not count one another.
const mostBefore = 1024

// before returns the calls before a call in its flow, their cost and units, and whether the call itself waits there.
func (w *waiter) before(f *flow) (n int, cost, units int64, waiting bool) {
	if f == nil {
		return 0, 0, 0, false
	}
	if w.flow == nil {
		return f.n, f.cost, f.units, false
	}
	for o := w.prev; o != nil; o = o.prev {
		if n, cost, units = n+1, cost+int64(o.cost), units+o.units; n == mostBefore {
			share := float64(w.call.Came-f.calls.first.call.Came) / float64(f.calls.last.call.Came-f.calls.first.call.Came)
			of := func(all int64) int64 { return int64(share * float64(all)) }
			return max(n, int(of(int64(f.n-1)))), max(cost, of(f.cost)), max(units, of(f.units)), true
		}
	}
	return n, cost, units, true
}

// A seen is an order as it will be after its first call has gone.
type seen struct {
	*order
	head               *waiter
	weights            *[Priorities]int
	paid, priorityPaid int64 // by the head
	virtual            int64
	priorityVirtual    int64 // of the head's priority
}

func (l *Line) seen() seen {
	o := &l.order
	v := seen{order: o, head: o.first(), weights: &l.all.config.Weights, virtual: o.virtual}
	if w := v.head; w != nil {
		own := &o.priorities[w.call.Priority]
		v.paid, v.priorityPaid = price(w.cost, w.call.Weight), price(w.cost, v.weights[w.call.Priority])
		v.virtual, v.priorityVirtual = max(o.virtual, own.start), max(own.virtual, w.flow.start)
	}
	return v
}

// priority returns a priority as it will be after the head has gone.
func (v *seen) priority(i int) item {
	o := v.priorities[i].item
	if v.head.call.Priority == i {
		o.add(-1, v.head)
		o.serves(v.priorityPaid)
	}
	return o
}

// flow returns a flow as it will be after the head has gone.
func (v *seen) flow(f *flow) item {
	o := f.item
	if v.head.flow == f {
		o.add(-1, v.head)
		o.serves(v.paid)
	}
	return o
}

// tag returns the start tag of the next call of a flow, which may be nil, and the flow's total of increments. If it
// was idle it has credit.
func (v *seen) tag(w *waiter, f *flow) (at, served int64) {
	virtual := v.priorities[w.call.Priority].virtual
	if v.head.call.Priority == w.call.Priority {
		virtual = v.priorityVirtual
	}
	saved := price(w.cost, w.call.Weight)
	if f == nil {
		return virtual - saved, 0
	}
	if o := v.flow(f); o.n > 0 || o.start >= virtual-saved {
		return o.start, o.served
	}
	return virtual - saved, 0
}

// others returns the number and cost of the calls of other flows of the priority that go before a call with the tag
// at. It examines at most most flows and assumes that the rest are like them.
func (v *seen) others(w *waiter, own *flow, at float64, served int64, most int) (n int, sum int64) {
	waiting := v.priorities[w.call.Priority].waiting
	for i, f := range waiting {
		if i >= most {
			break
		}
		o := v.flow(f)
		if f == own || o.n == 0 {
			continue
		}
		a, c := o.ahead(at, f.weight, o.served <= served)
		n, sum = n+a, sum+c
	}
	if all := len(waiting); all > most {
		n = n * all / most
	}
	return n, sum
}

// ahead returns the number and the cost in nanoseconds of calls that start before the tag, or at it if equals is set.
// It assumes that each call costs the mean.
func (i *item) ahead(at float64, weight int, equals bool) (n int, sum int64) {
	room := (at - float64(i.start)) * float64(weight) / scale
	if room < 0 || room == 0 && !equals {
		return 0, 0
	}
	if room >= float64(i.cost) {
		return i.n, i.cost
	}
	each := float64(i.cost) / float64(i.n)
	n = int(math.Ceil(room / each))
	if equals && float64(n)*each <= room {
		n++
	}
	return min(n, i.n), int64(room)
}

// precedes reports whether a call with these tags of its priority and flow goes before the head.
func (v *seen) precedes(w *waiter, priorityStart, start, served int64) bool {
	h := v.head
	if priority, own := w.call.Priority, h.call.Priority; priority != own {
		at := v.priorities[own].start
		return priorityStart < at || priorityStart == at && priority < own
	}
	return start < h.flow.start || start == h.flow.start && served < h.flow.served
}
