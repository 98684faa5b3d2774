package inflight

import (
	"sync/atomic"
	"time"
)

// times is a ring with the instants at which the latest attempts were sent.
type times [256]atomic.Uint64

// A word of the ring contains the instant, to 256 ns, and some bits of the attempt's number, which distinguish it
// from an older attempt. voided marks an attempt that was not sent in the end.
const (
	tagBits = 8
	tagMask = 1<<tagBits - 1
	voided  = ^uint64(0) &^ tagMask
)

func tag(attempt uint64) uint64 { return attempt / uint64(len(times{})) & tagMask }

func (t *times) set(attempt uint64, now time.Duration) {
	t[attempt%uint64(len(t))].Store(uint64(now)&^tagMask | tag(attempt))
}

func (t *times) void(attempt uint64) {
	w := &t[attempt%uint64(len(t))]
	if old := w.Load(); old&tagMask == tag(attempt) {
		w.CompareAndSwap(old, voided|tag(attempt))
	}
}

// get returns when an attempt was sent. ok is false if that is unknown, or not known yet.
func (t *times) get(attempt uint64) (at time.Duration, void, ok bool) {
	w := t[attempt%uint64(len(t))].Load()
	if w&tagMask != tag(attempt) {
		return 0, false, false
	}
	return time.Duration(w &^ tagMask), w&^tagMask == voided, true
}

// unheard returns when the nth attempt after the newest answered one was sent, counted from 1. ok is false if there
// are fewer. The lock must be held.
func (b *Bound) unheard(nth int) (at time.Duration, ok bool) {
	last := b.word.Load() >> flightBits
	if last-b.state.newest > uint64(len(b.sent)) {
		return b.state.newestSent, true // so many attempts that this is about the instant
	}
	for a := b.state.newest + 1; a <= last; a++ {
		at, void, ok := b.sent.get(a)
		if void {
			continue
		}
		if nth--; nth == 0 || !ok {
			return at, ok
		}
	}
	return 0, false
}

// overdue reports whether three attempts, and all sent after the first of them, are unanswered, and the third is
// overdue.
func (b *Bound) overdue(now time.Duration) bool {
	l := &b.state.learnt
	if !l.known() {
		return false
	}
	at, ok := b.unheard(3)
	return ok && at < now-l.base-l.slack()
}

func (b *Bound) calm(now time.Duration) bool { return b.state.calm(now, b.overdue(now)) }
