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
	w.saved, w.flow.saved, w.flow.last = w.flow.saved, 0, w.paid
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

// head is the one head that may have to yield: its turn is not at hand, and it is
// not a head out of turn. There is none while more than one ask.
func (q *queue[K]) head() *Waiter[K] {
	if q.room > 1 || q.heads > 1 {
		return nil
	}
	for w := q.leading.last; w != nil; w = w.prev {
		if !w.near && !w.stays {
			return w
		}
	}
	return nil
}

// overtaken reports whether one that waits goes before a head.
func (q *queue[K]) overtaken(h *Waiter[K]) bool {
	for i := range q.lanes {
		if l := &q.lanes[i]; l.n > 0 {
			if f := l.waiting[0]; f != h.flow && q.precedes(i, l.start, f.start, f.served, h) {
				return true
			}
		}
	}
	return false
}

// precedes reports whether a call of a lane, and of a flow that has had so much, goes
// before a head, as those would start if the head had not been charged.
func (q *queue[K]) precedes(lane int, laneStart, start, served int64, h *Waiter[K]) bool {
	if own := h.call.Lane; lane != own {
		at := q.lanes[own].start - h.lanePaid
		return laneStart < at || laneStart == at && lane < own
	}
	return start < h.tag || start == h.tag && served < h.flow.served-h.paid
}

// yield puts a head back, before all others of its flow. When the next one's turn
// comes is not known until it says so.
func (q *queue[K]) yield(w *Waiter[K]) {
	q.unlead(w)
	q.refund(w)
	l := &q.lanes[w.call.Lane]
	w.flow = l.flow(w.call.Flow) // it may have been forgotten meanwhile
	w.flow.saved = w.saved
	l.pushFront(w)
	q.n++
	w.state, q.due = waits, 0
}

// unlead takes a head away.
func (q *queue[K]) unlead(w *Waiter[K]) {
	q.leading.remove(w)
	q.led--
	if !w.near {
		q.heads--
	}
}
