package line

import (
	"container/heap"
	"math"
)

// A priority is the flows whose calls have it.
type priority struct {
	item
	virtual int64
	flows   map[string]*flow
	waiting flows
	weights int // of those that wait
	tidyAt  int // known flows
	seq     uint64
}

// A flow is the calls of one name and priority, in the order in which they came.
type flow struct {
	item
	name   string
	weight int    // of the last call that entered
	last   int64  // what its last call was charged: so much it may save up
	saved  int64  // what it had saved up when it came back, until its next call goes
	seq    uint64 // of the call with which it came, or came back
	slot   int    // in the heap of its priority; -1 if nobody waits
	calls  list
}

// flows is a heap of those that have somebody waiting, by tag.
type flows []*flow

func (h flows) Len() int { return len(h) }
func (h flows) Less(i, j int) bool {
	if c := h[i].before(&h[j].item); c != 0 {
		return c < 0
	}
	// Who came first goes first, once. After that it is who came later: it has waited
	// for the end of what it met.
	return (h[i].seq < h[j].seq) == (h[i].served == 0)
}

func (h flows) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i, j
}

func (h *flows) Push(x any) {
	f := x.(*flow)
	f.slot = len(*h)
	*h = append(*h, f)
}

func (h *flows) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	f.slot = -1
	return f
}

// flow is the flow of the name, which is made if it is not known.
func (l *priority) flow(name string) *flow {
	f := l.flows[name]
	if f == nil {
		l.tidy()
		f = &flow{item: item{start: math.MinInt64 / 2}, name: name, slot: -1, weight: 1}
		l.flows[name] = f
	}
	return f
}

// tidy forgets flows that virtual time has caught up with: they would begin anew in
// any case. It looks at all of them each time that they have doubled.
func (l *priority) tidy() {
	if l.flows == nil {
		l.flows = make(map[string]*flow)
	}
	if len(l.flows) < max(l.tidyAt, 64) {
		return
	}
	for name, f := range l.flows {
		if f.n == 0 && f.start+f.last <= l.virtual {
			delete(l.flows, name)
		}
	}
	l.tidyAt = 2 * len(l.flows)
}

// push puts a call into its flow, which may begin to wait.
func (l *priority) push(w *waiter) {
	f := l.flow(w.call.Flow)
	w.flow = f
	f.calls.push(w)
	if f.n > 0 {
		l.weights -= f.weight
	}
	f.weight = w.call.Weight
	l.weights += f.weight
	f.add(1, w)
	l.add(1, w)
	if f.slot >= 0 {
		return
	}
	if p := price(w.cost, w.call.Weight); f.wakes(l.virtual - p) {
		l.seq++
		f.seq, f.saved = l.seq, p
	}
	heap.Push(&l.waiting, f)
}

// remove takes a call out of its flow, wherever it stands.
func (l *priority) remove(w *waiter) {
	f := w.flow
	f.calls.remove(w)
	f.add(-1, w)
	l.add(-1, w)
	if f.n == 0 {
		l.weights -= f.weight
		heap.Remove(&l.waiting, f.slot)
	}
}

// went moves virtual time on by what each flow could have had of what a call cost
// that has gone. Without that it would stand still while new flows come without end,
// and the second call of a flow would never go. It does not pass the tag that the
// flow has now, what it had saved up apart: a flow that is alone would run ahead of who
// joins it.
func (l *priority) went(w *waiter, tag int64) {
	weights := l.weights
	if w.flow.n == 0 {
		weights += w.call.Weight
	}
	l.virtual = max(l.virtual, min(l.virtual+price(w.cost, weights), tag))
}

// charge moves the tag of a flow.
func (l *priority) charge(f *flow, by int64) {
	f.serves(by)
	if f.slot >= 0 {
		heap.Fix(&l.waiting, f.slot)
	}
}

// A list is some waiters, in the order in which they came. The zero list is empty.
type list struct{ first, last *waiter }

// push puts a waiter behind those who came before it, from the nearer end: a call that comes is the last, and one that moves from
// another line came early as a rule.
func (l *list) push(w *waiter) {
	if came := w.call.Came; l.first != nil && int64(came-l.first.call.Came) < int64(l.last.call.Came-came) {
		w.prev, w.next = nil, l.first
		for w.next.call.Came <= came {
			w.prev, w.next = w.next, w.next.next
		}
	} else {
		w.prev, w.next = l.last, nil
		for w.prev != nil && w.prev.call.Came > came {
			w.prev, w.next = w.prev.prev, w.prev
		}
	}
	if w.prev == nil {
		l.first = w
	} else {
		w.prev.next = w
	}
	if w.next == nil {
		l.last = w
	} else {
		w.next.prev = w
	}
}

// remove takes a waiter out, wherever it stands: it knows its neighbours.
func (l *list) remove(w *waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}
