package fair

import (
	"cmp"
	"time"
)

// An item is whatever shares something by weight: a lane of a queue, or a flow of
// a lane.
//
// This is start-time fair queueing (Goyal, Vin, Cheng: Start-time Fair Queueing,
// SIGCOMM 1996), once between the lanes and once between the flows of each. What
// is next in line carries a start tag, in virtual time; the lowest goes, virtual
// time is its tag at least, and the tag of who comes after it in the same flow is
// later by its cost over its weight. A lane that was away starts at the present
// virtual time and has saved nothing up; a flow that was away for so long that it
// could have made a call has saved up that one. Otherwise ten calls that come
// together, while another flow has all that it can get, would take more than twice
// as long as without it, for each would go after one of the other's. Tags are given
// when a call comes to the front of its flow, not when it enters: those who leave
// before have cost their flow nothing.
type item struct {
	start  int64 // tag of the next call
	served int64 // in the same measure, since it was away; who has had less goes first of equals
	n      int   // calls that wait
	cost   int64 // theirs, in nanoseconds
}

// scale is how finely virtual time is divided: calls of 1 ns can have weights of
// up to 256 and still differ.
const scale = 1 << 8

// mostCost bounds what one call counts, so that tags do not overflow: 10,000 calls
// of an hour each are a year of waiting without a break.
const mostCost = time.Hour

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

// A flow is the calls of one name in one lane, in the order in which they came.
type flow[K comparable] struct {
	item
	name   string
	weight int    // of the last call that entered
	last   int64  // what its last call was charged: so much it may save up
	saved  int64  // what it had saved up when it came back, until its next call goes
	seq    uint64 // of the call with which it came, or came back
	slot   int    // in the heap of its lane; -1 if nobody waits
	calls  line[K]
}

// A line is a list of waiters.
type line[K comparable] struct{ first, last *Waiter[K] }

func (l *line[K]) push(w *Waiter[K]) {
	w.prev, w.next = l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
}

// pushFront puts a waiter before all others.
func (l *line[K]) pushFront(w *Waiter[K]) {
	w.prev, w.next = nil, l.first
	if l.first == nil {
		l.last = w
	} else {
		l.first.prev = w
	}
	l.first = w
}

func (l *line[K]) remove(w *Waiter[K]) {
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
