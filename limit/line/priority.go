package line

import (
	"container/heap"
	"math"
	"time"
)

// A priority consists of the flows whose calls have it.
type priority struct {
	item
	virtual int64
	flows   map[string]*flow
	waiting flows
	weights int // of waiting flows
	tidyAt  int // number of known flows at which tidy is due
	seq     uint64
}

// A flow consists of the calls of one name and priority, in order of arrival.
type flow struct {
	item
	name   string
	weight int           // of the last call that entered
	last   int64         // charge for its last call, and the most credit that it may have
	saved  int64         // its credit when it came back, until its next call goes
	seq    uint64        // of the call with which it came, or came back
	since  time.Duration // since when its calls have waited without a break
	slot   int           // in the heap of its priority; -1 if no call waits
	calls  list
}

// flows is a heap of the flows with waiting calls, by tag.
type flows []*flow

func (h flows) Len() int { return len(h) }
func (h flows) Less(i, j int) bool {
	if c := h[i].before(&h[j].item); c != 0 {
		return c < 0
	}
	// The flow that came first goes first, once. After that the later flow goes first, because it has waited for
	// calls that were there before it.
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

// flow returns the flow of the name, and makes it if it is unknown.
func (l *priority) flow(name string) *flow {
	f := l.flows[name]
	if f == nil {
		l.tidy()
		f = &flow{item: item{start: math.MinInt64 / 2}, name: name, slot: -1, weight: 1}
		l.flows[name] = f
	}
	return f
}

// tidy forgets flows that virtual time has caught up with, because they would start without history anyway. It
// examines all flows whenever their number has doubled.
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

// push adds a call to its flow, which may begin to wait.
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

// remove removes a call from its flow, at any position.
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

// went advances virtual time after a call, by the share that each flow could have had of its cost. Otherwise virtual
// time would stop while new flows keep coming, and the second call of a flow would never go. Virtual time does not
// pass the flow's present tag without its credit. Otherwise a flow that is alone would run ahead of a flow that joins
// it.
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

// A list contains waiters in order of arrival. The zero list is empty.
type list struct{ first, last *waiter }

// push inserts a waiter in order of arrival. It searches from the nearer end: a new call is the last, and a call that
// moves from another queue is usually an early one.
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

// remove removes a waiter at any position, by its neighbors.
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
