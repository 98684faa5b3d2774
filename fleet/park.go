package fleet

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// park sleeps until the waiter is woken, the instant has come, or ctx ends.
func (q *queue) park(ctx context.Context, w *waiter, until time.Duration) error {
	c := q.group.fleet.clock
	d := until - c.Now()
	if d <= 0 {
		return nil
	}
	if c == clock.System {
		return w.sleep(ctx, d)
	}
	// A virtual clock knows only its own contexts, and runs one goroutine at a time.
	inner, cancel := c.WithTimeout(ctx, longestPark, nil)
	defer cancel()
	q.mu.Lock()
	w.wake = cancel
	woken := w.state == done
	select {
	case <-w.ready:
		woken = true
	default:
	}
	q.mu.Unlock()
	if !woken {
		_ = c.Sleep(inner, min(d, longestPark))
	}
	q.mu.Lock()
	w.wake = nil
	q.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

const longestPark = 1 << 60

func (w *waiter) sleep(ctx context.Context, d time.Duration) error {
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
		select {
		case <-w.ready: // both: what was brought counts
			return nil
		default:
			return context.Cause(ctx)
		}
	}
}

// signal wakes a waiter; the lock is held.
func (w *waiter) signal() {
	if w.wake != nil {
		w.wake()
		return
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}
