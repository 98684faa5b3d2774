package demo

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

const (
	trickle = 0.40 // of the rate that comes evenly, by chance
	batch   = 0.40 // of a second's worth that comes at once
	beat    = 900 * time.Millisecond
)

// schedule is when each call is due, in order.
func schedule(rng *rand.Rand, rate int, length time.Duration) []time.Duration {
	var due []time.Duration
	mean := float64(time.Second) / (trickle * float64(rate))
	for at := time.Duration(0); at < length; at += time.Duration(rng.ExpFloat64() * mean) {
		due = append(due, at)
	}
	for at := beat / 2; at < length; at += beat {
		for range int(batch * float64(rate)) {
			due = append(due, at)
		}
	}
	slices.Sort(due)
	return due
}

// work makes the calls as they come due, so many at once at most.
func (w *way) work(ctx context.Context, start time.Time, due []time.Duration, workers int) {
	var taken atomic.Int64
	var crew sync.WaitGroup
	for range min(workers, len(due)) {
		crew.Go(func() {
			for i := taken.Add(1); i <= int64(len(due)); i = taken.Add(1) {
				at := due[i-1]
				if clock.System.Sleep(ctx, at-time.Since(start)) != nil {
					return
				}
				e := w.call(ctx)
				e.at = time.Since(start)
				e.took = e.at - at
				if ctx.Err() != nil {
					return
				}
				w.note(e)
			}
		})
	}
	crew.Wait()
}
