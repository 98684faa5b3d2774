package fair

import "time"

// A queue is those who wait for one thing.
type queue[K comparable] struct {
	key     K
	room    int // heads that there may be at once
	heads   int // that there are, those apart whose turn is at hand
	leading line[K]
	led     int // in leading
	due     time.Duration
	virtual int64
	lanes   [Lanes]lane[K]
	n       int // who wait to become heads
}

func (q *queue[K]) push(w *Waiter[K]) {
	l := &q.lanes[w.call.Lane]
	w.flow = l.flow(w.call.Flow)
	if l.n == 0 {
		l.wakes(q.virtual)
	}
	l.push(w)
	q.n++
	w.state = waits
}

func (q *queue[K]) remove(w *Waiter[K]) {
	q.lanes[w.call.Lane].remove(w)
	q.n--
}

// first is the lane whose turn it is.
func (q *queue[K]) first() (best *lane[K]) {
	for i := range q.lanes {
		if l := &q.lanes[i]; l.n > 0 && (best == nil || l.start < best.start) { // the higher one of equals
			best = l
		}
	}
	return best
}

// next takes the call that is next and charges it.
func (q *queue[K]) next(weights *[Lanes]int) *Waiter[K] {
	l := q.first()
	q.virtual = max(q.virtual, l.start)
	w := l.waiting[0].calls.first
	l.virtual = max(l.virtual, w.flow.start)
	q.charge(w, weights)
	return w
}

// charge takes a call out of its lane; its flow and its lane pay for it.
func (q *queue[K]) charge(w *Waiter[K], weights *[Lanes]int) {
	l := &q.lanes[w.call.Lane]
	q.remove(w)
	w.tag = w.flow.start
	w.paid, w.lanePaid = price(w.call.Cost, w.call.Weight), price(w.call.Cost, weights[w.call.Lane])
	l.charge(w.flow, w.paid)
	l.serves(w.lanePaid)
}

// promote makes a call a head out of turn.
func (q *queue[K]) promote(w *Waiter[K], weights *[Lanes]int) {
	q.charge(w, weights)
	q.lead(w)
}

// refund takes back what a call was charged that left without going.
func (q *queue[K]) refund(w *Waiter[K]) {
	l := &q.lanes[w.call.Lane]
	l.charge(w.flow, -w.paid)
	l.serves(-w.lanePaid)
	w.paid, w.lanePaid = 0, 0
}

// lead makes a call that is in no lane a head.
func (q *queue[K]) lead(w *Waiter[K]) {
	w.state, w.near = leads, false
	q.leading.push(w)
	q.led++
	q.heads++
}

// unlead takes a head away.
func (q *queue[K]) unlead(w *Waiter[K]) {
	q.leading.remove(w)
	q.led--
	if !w.near {
		q.heads--
	}
}
