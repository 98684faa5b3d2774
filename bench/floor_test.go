package bench

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/counter"
)

// The parts of a decision and its report, individually. A decision cannot be faster than the sum of its required parts.
// bench/records/benchmarks.md has the sums.
func BenchmarkFloor(b *testing.B) {
	run(b,
		// Two clock reads: at the admission and at the end of the attempt. One is enough without a duration to record.
		row{"clock-2", func() op {
			return func() bool {
				begun := nanos()
				return nanos() >= begun
			}
		}},
		// The limit, the breaker's window, the number and time of started attempts, the bucket and the sum of their durations.
		// Other cores can read or write each of these words at any time.
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
		// The selection of this core's words.
		row{"pick", func() op { return func() bool { return counter.Pick() >= 0 } }},
		// A caller's zeroed permit and its copied call.
		row{"permit", func() op {
			c := known
			return func() bool {
				var p weir.Permit
				return handed(c, &p)
			}
		}},
		// The context of an attempt of Do, which its function may store.
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

// A context48 has the size and the pointers of the context of an attempt.
type context48 struct {
	parent   any
	deadline time.Duration
	_, _     *int
	_        bool
}

var kept atomic.Pointer[context48]
