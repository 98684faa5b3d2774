package limit

import (
	"math"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A rolling is the shape of a rolling limit: never more than the amount in any window of the period,
// wherever the window begins. It is a log of what went (bucket.Log: a sliding-window log, whose entries
// of one grain of time are one for amounts of 1,024 and more, so that it is bounded), behind a lock
// that is held for as long as it takes to look at it.
type rolling struct {
	mu     sync.Mutex
	log    bucket.Log
	paused time.Duration // nothing goes before this instant
	gone   bool
}

// never is the end of no pause: long ago, yet far enough from the end of numbers
// to be counted with.
const never = time.Duration(math.MinInt64 / 2)

// newRolling begins with an empty window.
func newRolling(w bucket.Window) *rolling { return &rolling{log: bucket.NewLog(w), paused: never} }

// take is exact for amounts below 1,024; above, calls of one grain count from the last of them.
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

// ask is when enough of what went has left the window.
func (r *rolling) ask(now time.Duration, n int64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Ask(now, r.paused, n)
}

// owe counts what was used beyond the reservation where it was used: now.
func (r *rolling) owe(now time.Duration, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Owe(now, n)
}

// back counts n units of a turn no more. What has left the window is gone.
func (r *rolling) back(_ time.Duration, t Turn, n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Back(bucket.Mark(t.Place), min(n, t.Cost))
}

// pause lets time go on: what went leaves the window meanwhile. It never shortens a pause.
func (r *rolling) pause(now, until time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if until > now && until > r.paused {
		r.paused = until
	}
}

// lift ends a pause: what fits into the window can go.
func (r *rolling) lift(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.paused > now {
		r.paused = never
	}
}

// set keeps what went in the window, also if it is more than the new amount.
func (r *rolling) set(c *change) bool {
	if c.limit.Shape != Rolling {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Set(c.now, c.limit.window())
	return true
}

// look is exact. Reset is until the last call leaves the window.
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

// retire is for an empty window without a pause: a new limiter would say the same.
func (r *rolling) retire(now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.full(now) || r.gone {
		return false
	}
	r.gone = true
	return true
}

// untouched reports whether a new limiter would say the same.
func (r *rolling) untouched(now time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full(now)
}

// full reports whether nothing is lost by forgetting the limiter. The lock is held.
func (r *rolling) full(now time.Duration) bool { return r.log.Reset(now) == 0 && r.paused <= now }

// close: the heir remembers all that went here.
func (r *rolling) close(time.Duration) (heir *Limiter, owed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = true
	return shapedAs(r.copy()), 0
}

func (r *rolling) copyTo(t *Limiter) { t.bucket.grow().instead = r.clone() }

// clone is one that counts the same.
func (r *rolling) clone() *rolling {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copy()
}

// copy is clone with the lock held.
func (r *rolling) copy() *rolling { return &rolling{log: r.log.Clone(), paused: r.paused} }

// assume has a limiter that nobody uses yet count all that another counts.
func (r *rolling) assume(now time.Duration, from *rolling) {
	next := from.clone()
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.log.Window
	r.log, r.paused = next.log, max(r.paused, next.paused)
	r.log.Set(now, w)
}

// empty takes what is left.
func (r *rolling) empty(now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Take(now, now, r.log.Left(now))
}

// retired reports whether whoever holds it has to look the key up again.
func (r *rolling) retired() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}
