package limit

import (
	"math"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A rolling is the shape of a rolling limit: at most the amount in any window of the period, wherever the window
// begins. It is a log of used units behind a lock that is held only briefly. The log is a sliding-window log
// (bucket.Log). For amounts of 1,024 and more, it has one entry per grain of time, so that its size is bounded.
type rolling struct {
	mu     sync.Mutex
	log    bucket.Log
	paused time.Duration // no units are granted before this instant
	gone   bool
}

// never is the end of a pause that does not exist: long ago, but safe in additions.
const never = time.Duration(math.MinInt64 / 2)

// newRolling returns a limit with an empty window.
func newRolling(w bucket.Window) *rolling { return &rolling{log: bucket.NewLog(w), paused: never} }

// take is exact for amounts below 1,024. Above, all calls of one grain count from the last of them.
func (r *rolling) take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return Turn{}, 0, false
	}
	m, wait, ok := r.log.Take(now, r.paused, n)
	if ok {
		t = Turn{bucket.Turn{Place: int64(m), Cost: n}}
	}
	return t, wait, ok
}

// ask returns the time until enough units have left the window.
func (r *rolling) ask(now time.Duration, n int64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Ask(now, r.paused, n)
}

// owe counts usage beyond the reservation at the instant of its use: now.
func (r *rolling) owe(now time.Duration, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Owe(now, n)
}

// back removes n units of a turn from the log. Units that have left the window no longer count anyway.
func (r *rolling) back(_ time.Duration, t Turn, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Back(bucket.Mark(t.Place), min(n, t.Cost))
}

// pause grants nothing until an instant. Usage still leaves the window meanwhile. It never shortens a pause.
func (r *rolling) pause(now, until time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until > now && until > r.paused {
		r.paused = until
	}
}

// lift ends a pause. Calls that fit into the window can proceed.
func (r *rolling) lift(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused > now {
		r.paused = never
	}
}

// set keeps the usage in the window, even if it exceeds the new amount.
func (r *rolling) set(c *change) bool {
	if c.limit.Shape != Rolling {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Set(c.now, c.limit.window())
	return true
}

// look is exact. Reset is the time until the last call leaves the window.
func (r *rolling) look(now time.Duration) Level {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Level{
		Left:      r.log.Left(now),
		Full:      r.log.Amount,
		PerSecond: float64(r.log.Amount) / r.log.Per.Seconds(),
		Reset:     r.log.Reset(now),
		Paused:    max(0, r.paused-now),
	}
}

func (r *rolling) pausedFor(now time.Duration) time.Duration { return r.look(now).Paused }

// retire succeeds for an empty window without a pause: a new limiter would be the same.
func (r *rolling) retire(now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.full(now) || r.gone {
		return false
	}
	r.gone = true
	return true
}

// untouched reports whether a new limiter would be the same.
func (r *rolling) untouched(now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full(now)
}

// full reports whether forgetting the limiter loses nothing. The lock must be held.
func (r *rolling) full(now time.Duration) bool { return r.log.Reset(now) == 0 && r.paused <= now }

// close returns an heir with the complete log.
func (r *rolling) close(time.Duration) (heir *Limiter, owed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	return shapedAs(r.copy()), 0
}

func (r *rolling) copyTo(t *Limiter) { t.bucket.grow().instead = r.clone() }

// clone returns a copy with the same log and pause.
func (r *rolling) clone() *rolling {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copy()
}

// copy is clone for callers that hold the lock.
func (r *rolling) copy() *rolling { return &rolling{log: r.log.Clone(), paused: r.paused} }

// assume copies the usage of another limiter into r, which must not be in use yet.
func (r *rolling) assume(now time.Duration, from *rolling) {
	next := from.clone()
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.log.Window
	r.log, r.paused = next.log, max(r.paused, next.paused)
	r.log.Set(now, w)
}

// empty takes all remaining units.
func (r *rolling) empty(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Take(now, now, r.log.Left(now))
}

// retired reports whether callers that hold the limiter must look up the key again.
func (r *rolling) retired() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}
