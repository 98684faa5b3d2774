// Package bench measures weir and comparable Go libraries. This file has the references: for each job the minimum amount of
// work, written by hand. They show what the machine can do and are not useful in programs.
package bench

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// line separates the neighboring fields into different cache lines.
type line [64]byte

var start = time.Now()

// nanos reads the monotonic clock in the cheapest portable way.
func nanos() int64 { return int64(time.Since(start)) }

// gcra is a rate limit in one word: the time at which the bucket will be full. Taking a token is one compare-and-swap, and
// refusing one a load.
type gcra struct {
	_     line
	full  atomic.Int64
	_     line
	every int64 // ns per token
	depth int64 // capacity of the bucket in ns
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

// window is the closed path of a breaker: a decision is a load, a report adds to the current time's bucket. A bucket contains
// its time slice (24 bits) and the count (40 bits).
type window struct {
	open    atomic.Bool
	_       line
	buckets [10]struct {
		word atomic.Uint64
		_    line
	}
}

const slice = int64(time.Second) // length of a bucket

func (w *window) success(now int64) {
	at := now / slice
	era := uint64(at) & (1<<24 - 1)
	word := &w.buckets[at%int64(len(w.buckets))].word
	if old := word.Load(); old>>40 != era {
		word.CompareAndSwap(old, era<<40) // if it fails, another core has reset the bucket
	}
	word.Add(1)
}

// coordinator decides by breaker and limit with one clock read, and reports a success with another.
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

// do is a simple retry loop around them.
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

// fullJitter returns a uniform random delay below a capped exponential bound.
func fullJitter(attempt int, base, limit time.Duration) time.Duration {
	return rand.N(min(limit, base<<min(attempt, 20)))
}
