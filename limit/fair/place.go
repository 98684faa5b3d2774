package fair

import (
	"math"
	"time"
)

// A Place is where a call stood that did not go, or stands.
type Place struct {
	Place   int           // in the order in which calls would have gone; 1 means next. It is an estimate if costs differ
	Waiting int           // how many waited, this one included
	Due     time.Duration // the instant at which the one at the head goes, as far as is known; or went last, if it yields
	Ahead   time.Duration // at least so much is the cost of those who would have gone before it, the head apart
}

// How many flows are looked at, so that a place costs some microseconds at most. It
// is taken that those beyond are like them.
const (
	lookedAt = 256  // for a call that enters
	allFlows = 1024 // for one whose time is over
	someOf   = 32   // for each of many that are sent away
)

// place is where a call of a flow stands that has some calls, with their cost,
// before it in its own flow. So many flows are looked at.
func (q *queue[K]) place(c *Call, f *flow[K], before int, cost int64, weights *[Lanes]int, flows int) Place {
	p := Place{Waiting: q.n + q.led, Due: q.due}
	l := &q.lanes[c.Lane]
	at, served := l.tag(f, price(c.Cost, c.Weight))
	n, sum := ahead(float64(at)+float64(cost)*scale/float64(c.Weight), l, f, served, flows)
	n, sum = n+before, sum+cost
	start := max(l.start, q.virtual)
	then := float64(start) + float64(sum)*scale/float64(weights[c.Lane])
	for i := range q.lanes {
		if o := &q.lanes[i]; i != c.Lane && o.n > 0 {
			a, b := o.ahead(then, weights[i], i < c.Lane)
			n, sum = n+a, sum+b
		}
	}
	if h := q.head(); n == 0 && h != nil && q.precedes(c.Lane, start, at, served, h) {
		n, p.Due = -1, max(0, p.Due-h.call.Cost)
	}
	p.Place = 1 + n + q.led
	p.Ahead = time.Duration(sum)
	return p
}

// tag is where the next call of a flow starts, which may be nil, and what it had
// before. If it was away it has saved something up.
func (l *lane[K]) tag(f *flow[K], saved int64) (at, served int64) {
	if f == nil || f.n == 0 && f.start < l.virtual-saved {
		return l.virtual - saved, 0
	}
	return f.start, f.served
}

// ahead is what goes of other flows before a call that starts at the tag.
func ahead[K comparable](at float64, l *lane[K], own *flow[K], served int64, most int) (n int, sum int64) {
	for i, f := range l.waiting {
		if i >= most {
			break
		}
		if f == own {
			continue
		}
		a, c := f.ahead(at, f.weight, f.served <= served)
		n, sum = n+a, sum+c
	}
	if all := len(l.waiting); all > most {
		n = n * all / most
	}
	return n, sum
}

// ahead is what starts before the tag, or at it if equals go first.
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

// before is what stands before a call in its own flow.
func (w *Waiter[K]) before() (n int, cost int64) {
	for o := w.prev; o != nil; o = o.prev {
		n, cost = n+1, cost+int64(o.call.Cost)
	}
	return n, cost
}
