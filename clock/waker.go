package clock

import (
	"context"
	"math"
	"sync"
	"time"
)

// A Waker lets one goroutine sleep until it is woken. Wake is safe for concurrent use.
type Waker struct {
	clock Clock
	ready chan struct{} // holds one signal
	timer *time.Timer   // reused by each sleep

	mu   sync.Mutex
	wake func() // ends the present sleep in a clock other than System
}

// NewWaker returns a waker that sleeps in the clock's time.
func NewWaker(c Clock) *Waker { return &Waker{clock: c, ready: make(chan struct{}, 1)} }

// Wake ends the present sleep, or the next one if there is none.
func (w *Waker) Wake() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
	if w.clock == System {
		return
	}
	w.mu.Lock()
	wake := w.wake
	w.mu.Unlock()
	if wake != nil {
		wake()
	}
}

// Sleep waits for d, until it is woken, or until ctx ends, and then returns the cause of ctx's end.
func (w *Waker) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if w.clock != System {
		return w.sleepVirtual(ctx, d)
	}
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	defer w.timer.Stop()
	select {
	case <-w.ready:
		return nil
	case <-w.timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sleepVirtual is Sleep in a clock that supports only its own contexts, and runs one goroutine at a time.
func (w *Waker) sleepVirtual(ctx context.Context, d time.Duration) error {
	inner, cancel := w.clock.WithTimeout(ctx, math.MaxInt64/4, nil)
	defer cancel()
	w.wakes(cancel)
	select {
	case <-w.ready:
	default:
		_ = w.clock.Sleep(inner, d)
	}
	w.wakes(nil)
	select {
	case <-w.ready:
	default:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (w *Waker) wakes(wake func()) {
	w.mu.Lock()
	w.wake = wake
	w.mu.Unlock()
}
