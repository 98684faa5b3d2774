package pause

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Book is the pauses of one upstream as this process knows them. The zero Book has none,
// and while there is none it costs a call one atomic load. It is safe for concurrent use.
//
// Each pause and each lift has a stamp: microseconds of the store's clock, as far as that
// is known, and later than any stamp that this process had seen. So what is said after
// hearing something counts as said after it, whatever the clocks show.
type Book struct {
	last  atomic.Int64 // when the last pause ends, at the latest
	unmet atomic.Bool

	mu      sync.RWMutex // a leaf: nothing is called while it is held
	by      Set
	waiting []func() // for Met
	client  string
	top     int64 // the highest stamp that was seen
	offset  int64 // what the store's clock shows, less ours, in microseconds
	shared  bool
	changes int64         // how often something changed that others may want to know
	full    time.Duration // until when nothing is over of what is kept, once there was too much
}

// most bounds how many pauses are kept. Callers whose pause is beyond it are told by the
// upstream itself.
const most = 10_000

// Share has the book be one of several, that of the client, whose clock shows so many
// microseconds since 1970 at instant 0. Until Met nobody knows what the others say.
func (b *Book) Share(client string, offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.client, b.offset, b.shared = client, offset, true
	b.unmet.Store(true)
}

// Unmet reports whether others may have said what is not known here yet.
func (b *Book) Unmet() bool { return b.unmet.Load() }

// Met ends that.
func (b *Book) Met() {
	if !b.unmet.Load() {
		return
	}
	b.mu.Lock()
	b.unmet.Store(false)
	waiting := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	for _, wake := range waiting {
		wake()
	}
}

// OnMet has wake called by Met, at once if that was already.
func (b *Book) OnMet(wake func()) {
	b.mu.Lock()
	unmet := b.unmet.Load()
	if unmet {
		b.waiting = append(b.waiting, wake)
	}
	b.mu.Unlock()
	if !unmet {
		wake()
	}
}

// Any reports whether there may be a pause at the instant.
func (b *Book) Any(now time.Duration) bool { return b.last.Load() > int64(now) }

// In is what holds a subject at the instant; the zero Entry if nothing does.
func (b *Book) In(now time.Duration, of Subject) Entry {
	if !b.Any(now) {
		return Entry{}
	}
	b.mu.RLock()
	e := b.by[of]
	b.mu.RUnlock()
	if e.Until() <= now {
		return Entry{}
	}
	e.expire(now)
	return e
}

// Add notes a pause until the instant. None is ever made shorter. Of those for a rate and
// a quota no more are kept than there is room for; it reports whether this one is.
func (b *Book) Add(now time.Duration, of Subject, why Reason, s Span) bool {
	if s.Until <= now {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e, known := b.by[of]
	if !known && why != Hand && why != Here && !b.room(now) {
		return false
	}
	s.At, s.By, s.Fresh = b.stamp(now), b.client, true
	if e.Spans[why].Until <= now {
		e.Spans[why] = Span{}
	}
	if s.Until <= e.Spans[why].Sure() {
		return true
	}
	e.Spans[why] = join(e.Spans[why], s) // what was heard may end later here, but sooner for others
	b.keep(of, e)
	if why != Here {
		b.changes++
	}
	return true
}

// Lift ends the pauses of a subject and of all that it holds, in this process alone if
// here is set. It returns whom they held.
func (b *Book) Lift(now time.Duration, of Subject, here bool) (lifted []Subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	stamp := b.stamp(now)
	if e := b.by[of]; b.shared && here {
		e.here = stamp
		b.put(of, e)
	} else if b.shared {
		e.Lifted = stamp
		b.put(of, e)
		b.changes++
	}
	return b.drop(now, of, stamp)
}

// drop ends what was said until the stamp of whatever a subject holds.
func (b *Book) drop(now time.Duration, by Subject, stamp int64) (lifted []Subject) {
	for of, e := range b.by {
		if !by.Holds(of) {
			continue
		}
		before := e.Until()
		if !e.drop(stamp) {
			continue
		}
		if before > now {
			lifted = append(lifted, of)
		}
		b.by[of] = e
	}
	if len(lifted) > 0 {
		b.weigh()
	}
	return lifted
}

// Hear takes over what others say: their pauses in instants of this process, and their
// lifts. It returns whom a pause holds longer than was known, and whom none holds any more.
func (b *Book) Hear(now time.Duration, said Set) (paused, lifted []Subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for of, o := range said {
		b.top = max(b.top, o.Lifted)
		for i := range o.Spans {
			b.top = max(b.top, o.Spans[i].At)
		}
		if e := b.by[of]; o.Lifted > e.Lifted {
			e.Lifted = o.Lifted
			b.put(of, e)
			lifted = append(lifted, b.drop(now, of, o.Lifted)...)
		}
	}
	for of, o := range said {
		if b.hear(now, of, &o) {
			paused = append(paused, of)
		}
	}
	return paused, lifted
}

// hear merges what another process knows of a subject: the later end wins, unless it was lifted since.
// longer says that more is held than before. The lock is held.
func (b *Book) hear(now time.Duration, of Subject, o *Entry) (longer bool) {
	e := b.by[of]
	lifted, before := max(b.by.Lifted(of), b.here(of)), e.Until()
	for i := range o.Spans {
		if s := o.Spans[i]; s.Until > now && s.At > lifted {
			// Also of one that was given here: it may stand for another's, which by the
			// store's clock, as far as that was known, ended no later.
			if e.Spans[i].Until <= now {
				e.Spans[i] = Span{}
			}
			e.Spans[i] = join(e.Spans[i], s)
		}
	}
	if e.Until() > max(before, now) { // perhaps by what the clocks are not known by
		b.keep(of, e)
		return true
	}
	return false
}

// here is the stamp until which what was said of a subject is lifted in this process.
func (b *Book) here(of Subject) int64 {
	stamp := max(b.by[of].here, b.by[All()].here)
	if of.Kind == Key {
		stamp = max(stamp, b.by[OfLimits(of.Name)].here)
	}
	return stamp
}

// put notes an entry. The lock is held.
func (b *Book) put(of Subject, e Entry) {
	if b.by == nil {
		b.by = make(Set)
	}
	b.by[of] = e
}

// keep is put of a pause that goes on: decisions look at last, an atomic, before all else.
func (b *Book) keep(of Subject, e Entry) {
	b.put(of, e)
	b.full = min(b.full, e.Until())
	b.last.Store(max(b.last.Load(), int64(e.Until())))
}

// weigh finds anew when the last pause ends.
func (b *Book) weigh() {
	var last time.Duration
	for _, e := range b.by {
		last = max(last, e.Until())
	}
	b.last.Store(int64(last))
}

// stamp is one that is later than all that were seen.
func (b *Book) stamp(now time.Duration) int64 {
	b.top = max(b.top+1, int64(now/time.Microsecond)+b.offset)
	return b.top
}

// room makes room for another pause, if there is any.
func (b *Book) room(now time.Duration) bool {
	if len(b.by) < most {
		return true
	}
	if now < b.full {
		return false // each of those for whom there is no room would look at all of them
	}
	b.by.Settle(now, b.old(now))
	b.full = math.MaxInt64
	for _, e := range b.by {
		if end := e.Until(); end > 0 {
			b.full = min(b.full, end)
		}
	}
	return len(b.by) < most
}

// old is the stamp of a lift that has nothing left to lift.
func (b *Book) old(now time.Duration) int64 {
	if !b.shared {
		return math.MaxInt64
	}
	return int64((now-Longest)/time.Microsecond) + b.offset
}

// Set tells the book what the store's clock shows, in microseconds less ours. What was
// said by a clock that is ahead of that counts as said now.
func (b *Book) Set(now time.Duration, offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offset = offset
	present := int64(now/time.Microsecond) + offset
	if b.top <= present || !b.unmet.Load() {
		return
	}
	b.top = present
	for of, e := range b.by {
		for i := range e.Spans {
			e.Spans[i].At = min(e.Spans[i].At, present)
		}
		e.Lifted, e.here = min(e.Lifted, present), min(e.here, present)
		b.by[of] = e
	}
}

// Changes counts what others may want to know.
func (b *Book) Changes() int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.changes
}

// Known is a copy of all that others may want to know, and how many changes it has seen.
func (b *Book) Known(now time.Duration) (Set, int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.by.Settle(now, b.old(now))
	all := make(Set)
	for of, e := range b.by {
		e.Spans[Here] = Span{}
		if e.Until() > now || e.Lifted > 0 {
			all[of] = e
		}
	}
	return all, b.changes
}

// All lists who is held at the instant, those for longest first, so many at most, and
// says how many there are.
func (b *Book) All(now time.Duration, most int) (all []Held, n int) {
	if !b.Any(now) {
		return nil, 0
	}
	b.mu.RLock()
	by := maps.Clone(b.by)
	b.mu.RUnlock()
	for of, e := range by {
		if e.Until() > now {
			e.expire(now)
			all = append(all, Held{of, e})
		}
	}
	slices.SortFunc(all, byEnd)
	n = len(all)
	return all[:min(n, max(0, most))], n
}

// A Held is a subject and what holds it.
type Held struct {
	Subject
	Entry
}
