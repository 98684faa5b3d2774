package pause

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Book holds the pauses of one upstream as this process knows them. The zero Book is empty. While it is empty, it
// costs a call one atomic load. It is safe for concurrent use.
//
// Each pause and each lift has a stamp: microseconds of the store's clock, as well as it is known, and later than any
// stamp that this process had seen. So an order that follows another one has a later stamp, even if clocks differ.
type Book struct {
	last  atomic.Int64 // latest end of a pause
	unmet atomic.Bool

	mu      sync.RWMutex // a leaf: nothing is called while it is held
	by      Set
	waiting []func() // called by Met
	client  string
	top     int64 // the highest stamp seen
	offset  int64 // the store's clock minus ours, in microseconds
	shared  bool
	changes int64         // number of changes to share
	full    time.Duration // after the Book was full, the instant before which no pause ends
}

// most bounds how many pauses are kept. Callers whose pause is beyond it are paused by the upstream's own responses.
const most = 10_000

// Share makes the Book shared. client names this process. offset is the clock's microseconds since 1970 at instant 0.
// Until Met the pauses of other processes are unknown.
func (b *Book) Share(client string, offset int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.client, b.offset, b.shared = client, offset, true
	b.unmet.Store(true)
}

// Unmet reports whether the pauses of other processes may be unknown.
func (b *Book) Unmet() bool { return b.unmet.Load() }

// Met states that they are known.
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

// OnMet makes Met call wake. It calls wake immediately if Met was called before.
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

// In returns the pauses of a subject at the instant; the zero Entry if there are none.
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

// Add adds a pause. It never shortens one. The number of pauses for rates and quotas is bounded. Add reports whether
// the pause is kept.
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
	e.Spans[why] = join(e.Spans[why], s) // another process's pause may end later here, but sooner elsewhere
	b.keep(of, e)
	if why != Here {
		b.changes++
	}
	return true
}

// Lift ends the pauses of a subject and of all its parts. If here is set, it does so in this process only. It returns
// the subjects that were paused.
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

// drop ends all pauses of a subject and its parts that began until the stamp.
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

// Hear applies the pauses, in instants of this process, and lifts of other processes. It returns the subjects that
// are paused longer than before, and the subjects that are no longer paused.
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

// hear merges another process's entry of a subject. The later end wins, unless it was lifted since. longer reports
// that the subject is paused longer than before. The lock is held.
func (b *Book) hear(now time.Duration, of Subject, o *Entry) (longer bool) {
	e := b.by[of]
	lifted, before := max(b.by.Lifted(of), b.here(of)), e.Until()
	for i := range o.Spans {
		if s := o.Spans[i]; s.Until > now && s.At > lifted {
			// Also merge with a pause that began here. It may hide another pause that ended no later by the store's
			// clock, as well as that was known.
			if e.Spans[i].Until <= now {
				e.Spans[i] = Span{}
			}
			e.Spans[i] = join(e.Spans[i], s)
		}
	}
	if e.Until() > max(before, now) { // possibly only by the uncertainty of the clocks
		b.keep(of, e)
		return true
	}
	return false
}

// here returns the stamp of the latest lift of a subject in this process.
func (b *Book) here(of Subject) int64 {
	stamp := max(b.by[of].here, b.by[All()].here)
	if of.Kind == Key {
		stamp = max(stamp, b.by[OfLimits(of.Name)].here)
	}
	return stamp
}

// put stores an entry. The lock is held.
func (b *Book) put(of Subject, e Entry) {
	if b.by == nil {
		b.by = make(Set)
	}
	b.by[of] = e
}

// keep stores an entry with a pause in force, and updates last, the atomic that decisions read first.
func (b *Book) keep(of Subject, e Entry) {
	b.put(of, e)
	b.full = min(b.full, e.Until())
	b.last.Store(max(b.last.Load(), int64(e.Until())))
}

// weigh computes again when the last pause ends.
func (b *Book) weigh() {
	var last time.Duration
	for _, e := range b.by {
		last = max(last, e.Until())
	}
	b.last.Store(int64(last))
}

// stamp returns a stamp that is later than all seen ones.
func (b *Book) stamp(now time.Duration) int64 {
	b.top = max(b.top+1, int64(now/time.Microsecond)+b.offset)
	return b.top
}

// room makes room for another pause if possible.
func (b *Book) room(now time.Duration) bool {
	if len(b.by) < most {
		return true
	}
	if now < b.full {
		return false // otherwise each call without room would examine all pauses
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

// old returns the stamp before which a lift can be forgotten.
func (b *Book) old(now time.Duration) int64 {
	if !b.shared {
		return math.MaxInt64
	}
	return int64((now-Longest)/time.Microsecond) + b.offset
}

// Set sets the store's clock minus ours, in microseconds. Stamps ahead of that clock count as made now.
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

// Changes returns the number of changes to share.
func (b *Book) Changes() int64 {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.changes
}

// Known returns a copy of everything to share, and the number of changes that it includes.
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

// All returns the paused subjects at the instant, the longest first, at most the given number, and how many there
// are.
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

// A Held is a subject with its pauses.
type Held struct {
	Subject
	Entry
}
