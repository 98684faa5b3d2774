// Package inflight bounds how many attempts are under way to an upstream, so that one
// that has stood still finds little dead work when it comes back.
//
// The bound is learnt: the answers that the upstream gives in a second, times what an
// answer takes when nothing is queued and a quarter of a second more (Little's law). A
// caller who leaves frees no slot, since the upstream still has the work; the answer to
// that attempt does, or to one that was sent later. See docs/explanation/recovery.md.
//
// Time comes in as an argument, and nobody waits here.
package inflight

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Bound counts what is under way and says whether one more may go. Take is an atomic
// word while the bound is not reached. It is safe for concurrent use.
type Bound struct {
	word  atomic.Uint64 // attempts so far, and how many of them are in flight
	under atomic.Int64  // below this many in flight one more may go, whatever else
	sent  times

	mu    sync.Mutex // nothing else is locked, and nobody called, while it is held
	state state
}

// A Slot is one attempt's. The zero Slot is no attempt's: it may be given back and
// counts for nothing.
type Slot uint64

const (
	flightBits = 20
	flightMask = 1<<flightBits - 1
)

// New makes a bound. The config must be valid.
func New(c Config) *Bound {
	b := new(Bound)
	b.state.config = c.withDefaults()
	return b
}

// Set changes the config. What is known and what is under way stays.
func (b *Bound) Set(now time.Duration, c Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.config = c.withDefaults()
	b.publish(now)
}

// publish says below how many in flight one more may go without a further look. The
// lock is held.
func (b *Bound) publish(now time.Duration) { b.under.Store(b.state.bound(now, false) / scale) }

// Take takes a slot, or says that there is none.
func (b *Bound) Take(now time.Duration) (Slot, bool) {
	if s, ok := b.take(now, b.under.Load()); ok {
		return s, true
	}
	b.mu.Lock()
	freed := b.state.expire(now)
	b.leave(len(freed))
	if l := &b.state.learnt; l.began == 0 {
		l.began = now
		b.publish(now)
	}
	s, ok := b.take(now, b.state.bound(now, b.calm(now))/scale)
	if !ok && b.probes(now) {
		if b.state.config.Limit > 0 { // a fixed bound is never passed: the oldest work that nobody waits for is given up
			more := b.state.oldest()
			freed = append(freed, more...)
			b.leave(len(more))
			s, ok = b.take(now, int64(b.state.config.Limit))
		} else {
			s, ok = b.force(now), true
		}
	}
	b.mu.Unlock()
	drop(freed)
	return s, ok
}

// take takes a slot if fewer than so many are taken.
func (b *Bound) take(now time.Duration, under int64) (Slot, bool) {
	for {
		w := b.word.Load()
		if int64(w&flightMask) >= under {
			return 0, false
		}
		if b.word.CompareAndSwap(w, w+1<<flightBits+1) {
			return b.stamp(w, now), true
		}
	}
}

// Force takes a slot whether there is one or not.
func (b *Bound) Force(now time.Duration) Slot { return b.force(now) }

func (b *Bound) force(now time.Duration) Slot {
	return b.stamp(b.word.Add(1<<flightBits+1)-1<<flightBits-1, now)
}

func (b *Bound) stamp(before uint64, now time.Duration) Slot {
	s := before>>flightBits + 1
	b.sent.set(s, now)
	return Slot(s)
}

// leave counts so many out.
func (b *Bound) leave(n int) { b.word.Add(^uint64(n) + 1) }

// InFlight is how many slots are taken.
func (b *Bound) InFlight() int { return int(b.word.Load() & flightMask) }

// Undo gives back a slot whose attempt was not sent.
func (b *Bound) Undo(s Slot) {
	if s == 0 {
		return
	}
	b.sent.void(uint64(s))
	b.leave(1)
}

// An Answer is what ended an attempt.
type Answer struct {
	Sent   time.Duration
	Failed bool          // an error: if it came fast, it says nothing of the time that work takes
	Waited time.Duration // how long calls have waited for a slot without a break
}

// Answered gives back the slot of an attempt that was answered.
func (b *Bound) Answered(now time.Duration, s Slot, a Answer) {
	if s == 0 {
		return
	}
	b.mu.Lock()
	b.hears(now)
	b.learns(now, s, a)
	freed := b.state.forget(uint64(s))
	b.leave(1 + len(freed))
	b.publish(now)
	b.mu.Unlock()
	drop(freed)
}

// Heard frees the slot of an attempt that was Left and goes on, as its answer has come.
// Where all callers leave before they are answered, nothing else tells how slow the
// upstream is; but what it stood still for tells of the standstill.
func (b *Bound) Heard(now time.Duration, s Slot, a Answer) {
	if s == 0 {
		return
	}
	b.mu.Lock()
	b.hears(now)
	if !b.stoodBy(a.Sent, now) {
		b.learns(now, s, a)
	}
	freed := b.state.forget(uint64(s))
	b.leave(len(freed))
	b.publish(now)
	b.mu.Unlock()
	drop(freed)
}

// learns learns from an answer. The lock is held, and its slot is still taken.
func (b *Bound) learns(now time.Duration, s Slot, a Answer) {
	st := &b.state
	if uint64(s) > st.newest {
		st.newest, st.newestSent = uint64(s), a.Sent
	}
	took := max(now-a.Sent, 0)
	if !a.Failed || st.learnt.known() && took >= st.learnt.base/2 {
		st.hears(answer{now: now, took: took, inFlight: b.InFlight(), waited: a.Waited, overdue: b.overdue(now)})
	}
}

// Left keeps the slot of an attempt whose caller has left, or whose time is up, until
// it is answered, or something that was sent later, but not longer than Held. drop
// ends the attempt then; it is nil if the attempt does not go on.
func (b *Bound) Left(now time.Duration, s Slot, drop func()) {
	if s == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if uint64(s) > b.state.newest {
		b.state.loses(now)
		b.publish(now)
	}
	b.state.hold(held{uint64(s), now + Held, drop})
}

// Later reports whether an attempt was answered that was sent after this one: then it
// is only slow, and no reason to keep it going when its caller leaves.
func (b *Bound) Later(s Slot) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state.newest > uint64(s)
}

func drop(freed []held) {
	for _, h := range freed {
		if h.drop != nil {
			h.drop()
		}
	}
}
