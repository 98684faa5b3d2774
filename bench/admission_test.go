package bench

import (
	"sync"
	"sync/atomic"
	"time"
)

// refuses uses up the limit and counts each refusal as a success.
func refuses(take op) op {
	take()
	return func() bool { return !take() }
}

// spin takes units in 64 goroutines as fast as possible for d. The returned time is slightly too long, in the limiter's favor.
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
