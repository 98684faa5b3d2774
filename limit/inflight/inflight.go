// Package inflight bounds the attempts in flight to an upstream, so that an upstream that recovers from a stall finds
// little work for callers that have left.
//
// The bound is learned: the responses per second, times the latency without a queue plus at least 250 ms (Little's
// law). A caller that leaves frees no slot, because the upstream still has the work. The slot becomes free with the
// response to that attempt or to a later one. See docs/explanation/recovery.md.
//
// Time is an argument, and no function waits.
package inflight

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Bound counts the attempts in flight and decides whether one more may be sent. While the bound is not reached,
// Take costs one atomic operation. It is safe for concurrent use.
type Bound struct {
	word  atomic.Uint64 // number of attempts so far, and of those in flight
	under atomic.Int64  // with fewer attempts in flight than this, one more may be sent without further checks
	sent  times

	mu    sync.Mutex // while it is held, no other lock is taken and no callback is called
	state state
}

// A Slot belongs to one attempt. The zero Slot belongs to none: returning it has no effect.
type Slot uint64

const (
	flightBits = 20
	flightMask = 1<<flightBits - 1
)

// New returns a bound. The config must be valid.
func New(c Config) *Bound {
	b := new(Bound)
	b.state.config = c.withDefaults()
	return b
}

// Set changes the config. Measurements and slots remain.
func (b *Bound) Set(now time.Duration, c Config) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state.config = c.withDefaults()
	b.publish(now)
}

// publish sets the number of attempts in flight below which Take needs no lock. The lock must be held.
func (b *Bound) publish(now time.Duration) { b.under.Store(b.state.bound(now, false) / scale) }

// Take takes a slot. It returns false if none is free.
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
		if b.state.config.Limit > 0 { // a fixed bound is never exceeded: the oldest held slot is freed instead
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

// take takes a slot if fewer than under are taken.
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

// Force takes a slot even if none is free.
func (b *Bound) Force(now time.Duration) Slot { return b.force(now) }

func (b *Bound) force(now time.Duration) Slot {
	return b.stamp(b.word.Add(1<<flightBits+1)-1<<flightBits-1, now)
}

func (b *Bound) stamp(before uint64, now time.Duration) Slot {
	s := before>>flightBits + 1
	b.sent.set(s, now)
	return Slot(s)
}

// leave frees n slots.
func (b *Bound) leave(n int) { b.word.Add(^uint64(n) + 1) }

// InFlight returns how many slots are taken.
func (b *Bound) InFlight() int { return int(b.word.Load() & flightMask) }

// Undo returns a slot whose attempt was not sent.
func (b *Bound) Undo(s Slot) {
	if s == 0 {
		return
	}
	b.sent.void(uint64(s))
	b.leave(1)
}

// An Answer describes how an attempt ended.
type Answer struct {
	Sent   time.Duration
	Failed bool          // an error; if it came fast, its latency does not count
	Waited time.Duration // how long calls have waited for a slot without a break
}

// Answered returns the slot of an attempt whose response has arrived.
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

// Heard frees the slot of an attempt that was Left and continued, because its response has arrived. If all callers
// leave before their responses, nothing else shows how slow the upstream is. The latency does not count if the
// upstream stalled meanwhile.
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

// learns learns from a response. The lock must be held, and the slot is still taken.
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

// Left keeps the slot of an attempt whose caller has left or timed out. The slot becomes free when the response to it
// or to a later attempt arrives, at the latest after Held. drop then ends the attempt. It is nil if the attempt has
// ended.
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

// Later reports whether the response to a later attempt has arrived. The attempt is then only slow, and need not
// continue when its caller leaves.
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
