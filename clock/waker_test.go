package clock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// other is a clock other than System that uses the same time. Like a simulator's, its sleeps end only with its own
// contexts.
type other struct{ system }

func TestWaker(t *testing.T) {
	for name, c := range map[string]Clock{"system": System, "another": other{}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := NewWaker(c)
				sleeps := func(ctx context.Context, d, want time.Duration, why error) {
					t.Helper()
					begin := time.Now()
					if err := w.Sleep(ctx, d); !errors.Is(err, why) || time.Since(begin) != want {
						t.Errorf("%v after %v, want %v after %v", err, time.Since(begin), why, want)
					}
				}
				sleeps(t.Context(), time.Second, time.Second, nil)
				sleeps(t.Context(), 0, 0, nil)
				time.AfterFunc(time.Second, w.Wake)
				sleeps(t.Context(), time.Minute, time.Second, nil)
				w.Wake()
				w.Wake()
				sleeps(t.Context(), time.Minute, 0, nil) // it was woken before
				sleeps(t.Context(), time.Second, time.Second, nil)
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(errLeft) })
				sleeps(ctx, time.Minute, time.Second, errLeft)
			})
		})
	}
}

func TestWakerWakesFromManySides(t *testing.T) {
	for _, c := range []Clock{System, other{}} {
		w := NewWaker(c)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					w.Wake()
				}
			})
		}
		for range 100 {
			_ = w.Sleep(t.Context(), time.Microsecond)
		}
		wg.Wait()
	}
}
