// Package bench measures weir beside the libraries that a Go program would
// otherwise take. This file holds the references: by hand, the least work that
// each job can be done with. They show what the machine allows and are of no
// use in a program.
package bench

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// line keeps what stands before and after it on cache lines of their own.
type line [64]byte

var start = time.Now()

// nanos is one monotonic clock read, the cheapest that is portable.
func nanos() int64 { return int64(time.Since(start)) }

// gcra is a rate limit in one word: the instant at which the bucket will be
// full again. Taking a token is one compare-and-swap, refusing one a load.
type gcra struct {
	_     line
	full  atomic.Int64
	_     line
	every int64 // ns per token
	depth int64 // ns that a full bucket is worth
}

func newGCRA(every time.Duration, burst int64) *gcra {
	return &gcra{every: int64(every), depth: int64(every) * burst}
}

func (l *gcra) allow(now int64) bool {
	for {
		old := l.full.Load()
		next := max(old, now) + l.every
		if next-now > l.depth {
			return false
		}
		if l.full.CompareAndSwap(old, next) {
			return true
		}
	}
}

// window is a breaker's closed path: a load to ask, an add to the bucket of the
// present instant to report. A bucket holds the slice it counts for (24 bits),
// then the count (40 bits).
type window struct {
	open    atomic.Bool
	_       line
	buckets [10]struct {
		word atomic.Uint64
		_    line
	}
}

const slice = int64(time.Second) // of time, per bucket

func (w *window) success(now int64) {
	at := now / slice
	era := uint64(at) & (1<<24 - 1)
	word := &w.buckets[at%int64(len(w.buckets))].word
	if old := word.Load(); old>>40 != era {
		word.CompareAndSwap(old, era<<40) // the loser adds to the winner's
	}
	word.Add(1)
}

// coordinator is breaker and limit asked together, with one clock read, and
// the report of a success, with another.
type coordinator struct {
	breaker window
	limit   *gcra
}

func newCoordinator() *coordinator {
	return &coordinator{limit: newGCRA(time.Nanosecond, 1<<40)}
}

func (c *coordinator) admit() bool {
	return !c.breaker.open.Load() && c.limit.allow(nanos())
}

func (c *coordinator) report() { c.breaker.success(nanos()) }

// do is the loop that a person in a hurry writes around them.
func (c *coordinator) do(call func() (int, error)) (v int, err error) {
	for range 3 {
		if !c.admit() {
			continue
		}
		if v, err = call(); err == nil {
			c.report()
			return v, nil
		}
	}
	return v, err
}

// fullJitter is a capped exponential delay, then a uniform draw below it.
func fullJitter(attempt int, base, limit time.Duration) time.Duration {
	return rand.N(min(limit, base<<min(attempt, 20)))
}
