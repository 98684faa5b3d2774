package bench

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/counter"
)

// What a decision and its report are made of, each by itself: below the sum of those that it cannot do without it
// cannot be. bench/records/benchmarks.md has the sums.
func BenchmarkFloor(b *testing.B) {
	run(b,
		// Two readings: when the attempt was allowed, and when it ended. Without a duration to tell, one.
		row{"clock-2", func() op {
			return func() bool {
				begun := nanos()
				return nanos() >= begun
			}
		}},
		// The limit, the breaker's window, attempts begun and when, their durations' bucket and sum: each a word that other
		// cores may read, or write, at any time.
		row{"words-6", func() op {
			var own [64]struct {
				_     line
				words [6]atomic.Int64
				_     line
			}
			return func() bool {
				words := &own[counter.Pick()].words
				for i := range words {
					words[i].Add(1)
				}
				return true
			}
		}},
		// Which of those words are this core's.
		row{"pick", func() op { return func() bool { return counter.Pick() >= 0 } }},
		// A caller's permit, zero, and its call, copied.
		row{"permit", func() op {
			c := known
			return func() bool {
				var p weir.Permit
				return handed(c, &p)
			}
		}},
		// The context of an attempt of Do, which its function may keep.
		row{"context", func() op {
			return func() bool {
				kept.Store(&context48{parent: &kept, deadline: time.Hour})
				return true
			}
		}},
	)
}

//go:noinline
func handed(c weir.Call, p *weir.Permit) bool { return c.ID != "" && p != nil }

// A context48 is as large as the context of an attempt, and has as many pointers.
type context48 struct {
	parent   any
	deadline time.Duration
	_, _     *int
	_        bool
}

var kept atomic.Pointer[context48]
