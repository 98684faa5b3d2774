package sim

import (
	"math"
	"time"
)

// forever is the instant that never comes.
const forever time.Duration = math.MaxInt64

// An event is a goroutine that is due to continue, or a timeout.
type event struct {
	at    time.Duration
	seq   uint64
	task  *task
	timer *timeout
	place int // in the agenda, from 1; 0 if it is not in it
}

func (e *event) before(f *event) bool {
	return e.at < f.at || e.at == f.at && e.seq < f.seq
}

// An agenda is a heap of events, the earliest first. Unlike container/heap it can remove any event without a search,
// and uses no interface calls.
type agenda []*event

func (a agenda) first() *event {
	if len(a) == 0 {
		return nil
	}
	return a[0]
}

func (a *agenda) add(e *event) {
	*a = append(*a, e)
	e.place = len(*a)
	a.up(len(*a) - 1)
}

// remove removes an event if it is in the agenda.
func (a *agenda) remove(e *event) {
	if e.place == 0 {
		return
	}
	i, last := e.place-1, len(*a)-1
	a.swap(i, last)
	(*a)[last] = nil
	*a = (*a)[:last]
	if e.place = 0; i < last {
		a.down(i)
		a.up(i)
	}
}

func (a *agenda) up(i int) {
	for i > 0 && (*a)[i].before((*a)[(i-1)/2]) {
		a.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (a *agenda) down(i int) {
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(*a); c++ {
			if (*a)[c].before((*a)[least]) {
				least = c
			}
		}
		if least == i {
			return
		}
		a.swap(i, least)
		i = least
	}
}

func (a *agenda) swap(i, j int) {
	h := *a
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i+1, j+1
}
