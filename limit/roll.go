package limit

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/bucket"
)

// A roll is the home of a rolling limit: an immutable log behind one pointer. A
// refusal only reads; a grant copies the log, which is short.
type roll struct{ state atomic.Pointer[rollState] }

// never is the end of no pause: long ago, yet far enough from the end of numbers
// to be counted with.
const never = time.Duration(math.MinInt64 / 2)

var _ shaped = (*roll)(nil)

type rollState struct {
	window bucket.Window
	log    bucket.Log
	paused time.Duration // nothing goes before this instant
	gone   bool
}

func newRoll(w bucket.Window) *roll {
	r := &roll{}
	r.state.Store(&rollState{window: w, paused: never})
	return r
}

// change swaps the state for what f makes of it, unless f declines.
func (r *roll) change(f func(s rollState) (rollState, bool)) bool {
	for {
		old := r.state.Load()
		next, ok := f(*old)
		if !ok {
			return false
		}
		if r.state.CompareAndSwap(old, &next) {
			return true
		}
	}
}

func (r *roll) take(now time.Duration, n int64, patience time.Duration) (t Turn, wait time.Duration, ok bool) {
	for {
		old := r.state.Load()
		if old.gone {
			return Turn{}, 0, false
		}
		next, mark, wait, ok := old.log.TakeFrom(old.window, now, old.paused, n, patience)
		if !ok || n == 0 {
			return Turn{}, wait, ok
		}
		t = Turn{bucket.Turn{Place: int64(mark.ID()), Cost: n}}
		if r.state.CompareAndSwap(old, &rollState{old.window, next, old.paused, false}) {
			return t, wait, true
		}
	}
}

func (r *roll) ask(now time.Duration, n int64) time.Duration {
	s := r.state.Load()
	_, _, wait, _ := s.log.TakeFrom(s.window, now, s.paused, n, -1)
	return wait
}

// owe counts what was used beyond the reservation where it was used: now.
func (r *roll) owe(now time.Duration, n int64) {
	r.change(func(s rollState) (rollState, bool) {
		s.log = s.log.Owe(s.window, now, n)
		return s, true
	})
}

// due: what is not in the log any more has come long ago, or costs nothing.
func (r *roll) due(now time.Duration, t Turn) time.Duration {
	s := r.state.Load()
	at, ok := s.log.When(bucket.MarkOf(uint64(t.Place)))
	if !ok {
		at = now
	}
	return max(0, at-now, s.paused-now)
}

// usable: an entry counts from its own instant; used later it would be counted
// too early, and leave the window too early.
func (r *roll) usable(now time.Duration, t Turn) bool {
	at, ok := r.state.Load().log.When(bucket.MarkOf(uint64(t.Place)))
	return ok && at >= now
}

func (r *roll) back(_ time.Duration, t Turn, n int64) {
	r.change(func(s rollState) (rollState, bool) {
		var back int64
		s.log, back = s.log.Back(bucket.MarkOf(uint64(t.Place)), n)
		return s, back > 0
	})
}

func (r *roll) pause(now, until time.Duration) {
	r.change(func(s rollState) (rollState, bool) {
		if until <= now || until <= s.paused {
			return s, false
		}
		s.paused = until
		s.log = s.log.Replan(s.window, now, until)
		return s, true
	})
}

func (r *roll) lift(now time.Duration) {
	r.change(func(s rollState) (rollState, bool) {
		if s.paused <= now {
			return s, false
		}
		s.paused, s.log = never, s.log.Here(now)
		return s, true
	})
}

func (r *roll) set(now time.Duration, l *Limit) bool {
	if l.Shape != Rolling {
		return false
	}
	w := l.window()
	return r.change(func(s rollState) (rollState, bool) {
		s.window = w
		s.log = s.log.Replan(w, now, s.paused)
		return s, true
	})
}

func (r *roll) look(now time.Duration) Level {
	s := r.state.Load()
	return Level{
		Left:      s.log.Left(s.window, now),
		Full:      s.window.Amount,
		PerSecond: float64(s.window.Amount) / s.window.Per.Seconds(),
		Reset:     s.log.Reset(s.window, now),
		Paused:    max(0, s.paused-now),
	}
}

func (r *roll) retire(now time.Duration) bool {
	return r.change(func(s rollState) (rollState, bool) {
		full := s.full(now) && !s.gone
		s.gone = true
		return s, full
	})
}

func (r *roll) untouched(now time.Duration) bool { return r.state.Load().full(now) }

func (s *rollState) full(now time.Duration) bool {
	return s.log.Reset(s.window, now) == 0 && s.paused <= now
}

func (r *roll) close(now time.Duration) (heir *Limiter, owed int64) {
	var last rollState
	r.change(func(s rollState) (rollState, bool) {
		last, s.gone = s, true
		return s, true
	})
	heir = &Limiter{}
	next := &roll{}
	next.state.Store(&last)
	heir.grow().shape = next
	return heir, last.log.Waiting(now)
}

// twin shares the state, which never changes.
func (r *roll) twin() shaped {
	t := &roll{}
	t.state.Store(r.state.Load())
	return t
}

// assume has a limiter that nobody uses yet count all that another counts.
func (r *roll) assume(from *rollState) {
	r.change(func(s rollState) (rollState, bool) {
		s.log, s.paused = from.log, max(s.paused, from.paused)
		return s, true
	})
}

// drain takes what is left.
func (r *roll) drain(now time.Duration) {
	s := r.state.Load()
	r.take(now, s.log.Left(s.window, now), 0)
}

func (r *roll) retired() bool { return r.state.Load().gone }
