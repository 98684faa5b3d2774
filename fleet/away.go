package fleet

import (
	"cmp"
	"time"
)

// watch checks whether the store is unavailable. That is so if a group serves calls without it, or failed to
// reach it in time. watch emits an event when that changes, and when an outage outlasts the reservation of
// parts. One goroutine emits all events in order. Other callers add their event and do not wait.
func (f *Fleet) watch(now time.Duration) {
	f.events.Lock()
	defer f.events.Unlock()
	if e, ok := f.turned(now); ok {
		f.untold = append(f.untold, e)
	}
	if f.telling { // the goroutine that set it emits this event, too
		return
	}
	f.telling = true
	for len(f.untold) > 0 {
		e := f.untold[0]
		f.untold = f.untold[1:]
		f.events.Unlock()
		f.announce(e)
		f.events.Lock()
	}
	f.telling = false
}

// turned updates the state of the outage and returns the event to emit, if any. The lock is held. Spent counts
// the units spent since the outage began, minus returned units.
func (f *Fleet) turned(now time.Duration) (e FallbackEvent, ok bool) {
	away, past, err := f.look(now)
	since := time.Duration(f.away.Load())
	switch {
	case away && since == 0:
		f.away.Store(max(1, int64(now)))
		f.past.Store(past)
		return FallbackEvent{Away: true, Past: past, Err: err}, true
	case away && past && !f.past.Load():
		f.past.Store(true)
		return FallbackEvent{Away: true, Past: true, Err: err, For: now - since, Spent: max(0, f.spent.Load())}, true
	case !away && since != 0:
		f.away.Store(0)
		f.past.Store(false)
		// Reset for the next outage: calls may be served without the store before it is noticed here.
		return FallbackEvent{For: now - since, Spent: max(0, f.spent.Swap(0))}, true
	}
	return FallbackEvent{}, false
}

// look checks all groups. away reports that a group serves or refuses calls without the store. past reports
// that it does so for longer than the store reserves parts. err is the error of such a group, or of a group
// that has never reached the store.
func (f *Fleet) look(now time.Duration) (away, past bool, err error) {
	for _, g := range f.all() {
		g.own.Lock()
		switch m, _ := g.standing.mode(now); {
		// The store serves the group, or may respond soon.
		case m == asking, m == waiting && g.standing.met && now < g.standing.patient():
		case m == waiting && !g.standing.met: // calls wait
			err = cmp.Or(err, g.beating.err)
		case g.standing.solo != 0 && m == parted: // the store responds, but late
		default:
			away, err = true, g.beating.err
			past = past || m != parted && m != waiting
		}
		g.own.Unlock()
	}
	return away, past, err
}

// announce calls the callback, with no lock held.
func (f *Fleet) announce(e FallbackEvent) {
	if f.o.Events.Fallback != nil {
		f.o.Events.Fallback(e)
	}
}
