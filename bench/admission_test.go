package bench

import (
	"sync"
	"sync/atomic"
	"time"
)

// refuses empties the limit and turns its refusals into successes.
func refuses(take op) op {
	take()
	return func() bool { return !take() }
}

// spin has 64 goroutines take as fast as they can for d. The elapsed time it
// returns is a little long, in the limiter's favour.
func spin(take op, d time.Duration) (admitted int64, elapsed time.Duration) {
	var total atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	began := time.Now()
	time.AfterFunc(d, func() { stop.Store(true) })
	for range 64 {
		wg.Go(func() { total.Add(takeUntil(&stop, take)) })
	}
	wg.Wait()
	return total.Load(), time.Since(began)
}

func takeUntil(stop *atomic.Bool, take op) (n int64) {
	for !stop.Load() {
		if take() {
			n++
		}
	}
	return n
}
