package fleet

import (
	"cmp"
	"time"
)

// watch looks whether the store is away: whether some group goes on without it, or has not
// reached it when it should have. It tells when that changes, and when a part is used for
// longer than the store keeps it. Events are told one at a time and in order, by whoever noticed the first of them;
// who notices another one meanwhile does not wait.
func (f *Fleet) watch(now time.Duration) {
	f.events.Lock()
	defer f.events.Unlock()
	if e, ok := f.turned(now); ok {
		f.untold = append(f.untold, e)
	}
	if f.telling { // who does tells this one, too
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

// turned notes whether the store is away, and returns what there is to tell. The lock is held. What is told as spent was let go
// since the store is away, and less what has come back of it.
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
		// For the next time: calls may go without the store before it is noticed here that it is away.
		return FallbackEvent{For: now - since, Spent: max(0, f.spent.Swap(0))}, true
	}
	return FallbackEvent{}, false
}

// look looks at all groups: away is that one goes on without the store, or cannot go on; past that it does so
// for longer than the store keeps parts; err why, or why the store was never reached.
func (f *Fleet) look(now time.Duration) (away, past bool, err error) {
	for _, g := range f.all() {
		g.own.Lock()
		switch m, _ := g.standing.mode(now); {
		// It goes by the store, or may hear from it soon.
		case m == asking, m == waiting && g.standing.met && now < g.standing.patient():
		case m == waiting && !g.standing.met: // it goes on with nothing
			err = cmp.Or(err, g.beating.err)
		case g.standing.solo != 0 && m == parted: // it answers, but late
		default:
			away, err = true, g.beating.err
			past = past || m != parted && m != waiting
		}
		g.own.Unlock()
	}
	return away, past, err
}

// announce tells an event, with no lock held.
func (f *Fleet) announce(e FallbackEvent) {
	if f.o.Events.Fallback != nil {
		f.o.Events.Fallback(e)
	}
}
