package fair

import (
	"container/heap"
	"math"
)

// A lane is the flows of one priority.
type lane[K comparable] struct {
	item
	virtual int64
	flows   map[string]*flow[K]
	waiting flows[K]
	weights int // of those that wait
	tidyAt  int // known flows
	seq     uint64
}

// flows is a heap of those that have somebody waiting, by tag.
type flows[K comparable] []*flow[K]

func (h flows[K]) Len() int { return len(h) }
func (h flows[K]) Less(i, j int) bool {
	if c := h[i].before(&h[j].item); c != 0 {
		return c < 0
	}
	// Who came first goes first, once. After that it is who came later: it has waited
	// for the end of what it met.
	return (h[i].seq < h[j].seq) == (h[i].served == 0)
}

func (h flows[K]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = i, j
}

func (h *flows[K]) Push(x any) {
	f := x.(*flow[K])
	f.slot = len(*h)
	*h = append(*h, f)
}

func (h *flows[K]) Pop() any {
	last := len(*h) - 1
	f := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	f.slot = -1
	return f
}

// flow is the flow of the name, which is made if it is not known.
func (l *lane[K]) flow(name string) *flow[K] {
	f := l.flows[name]
	if f == nil {
		l.tidy()
		f = &flow[K]{item: item{start: math.MinInt64 / 2}, name: name, slot: -1, weight: 1}
		l.flows[name] = f
	}
	return f
}

// tidy forgets flows that virtual time has caught up with: they would begin anew in
// any case. It looks at all of them each time that they have doubled.
func (l *lane[K]) tidy() {
	if l.flows == nil {
		l.flows = make(map[string]*flow[K])
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

func (l *lane[K]) push(w *Waiter[K]) {
	f := w.flow
	f.calls.push(w)
	if f.n > 0 {
		l.weights -= f.weight
	}
	f.weight = w.call.Weight
	l.weights += f.weight
	l.enters(w)
}

// pushFront puts a call before all others of its flow, from where it was taken.
func (l *lane[K]) pushFront(w *Waiter[K]) {
	f := w.flow
	f.calls.pushFront(w)
	if f.n == 0 {
		l.weights += f.weight
	}
	l.enters(w)
}

// enters counts a call that has been put into its flow, which may begin to wait.
func (l *lane[K]) enters(w *Waiter[K]) {
	f := w.flow
	f.n++
	f.cost += int64(w.call.Cost)
	l.n++
	l.cost += int64(w.call.Cost)
	if f.slot >= 0 {
		return
	}
	if p := price(w.call.Cost, w.call.Weight); f.wakes(l.virtual - p) {
		l.seq++
		f.seq, f.saved = l.seq, p
	}
	heap.Push(&l.waiting, f)
}

// remove takes a call out of its flow, wherever it stands.
func (l *lane[K]) remove(w *Waiter[K]) {
	f := w.flow
	f.calls.remove(w)
	f.n--
	f.cost -= int64(w.call.Cost)
	l.n--
	l.cost -= int64(w.call.Cost)
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
func (l *lane[K]) went(w *Waiter[K]) {
	weights := l.weights
	if w.flow.n == 0 {
		weights += w.call.Weight
	}
	l.virtual = max(l.virtual, min(l.virtual+price(w.call.Cost, weights), w.tag+w.paid+w.saved))
}

// charge moves the tag of a flow.
func (l *lane[K]) charge(f *flow[K], by int64) {
	f.serves(by)
	if f.slot >= 0 {
		heap.Fix(&l.waiting, f.slot)
	}
}
