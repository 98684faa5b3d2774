package weir_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit/pause"
)

// readings counts clock readings. A goroutine that reads the clock endlessly is put to sleep, so that the test ends.
type readings struct {
	clock.Clock
	n atomic.Int64
}

const endless = 10_000

func (r *readings) Now() time.Duration {
	if r.n.Add(1) > endless {
		time.Sleep(100 * ms)
	}
	return r.Clock.Now()
}

// While a shared limit is paused, a waiting call does not ask repeatedly, although enough units have returned for it.
func TestADriverRestsWhileItsLimitIsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &readings{Clock: clock.System}
		f := fleet.New(fleet.NewMemory(nil), fleet.Options{Lease: -1, Clock: c})
		f.Start()
		p := steady(rate("most", 1, 10*sec, 2))
		p.MaxWait = 60 * sec
		u := open(t, p, weir.Options{Fleet: f, Clock: c})
		var sent []*weir.Permit
		for range 2 {
			q, err := u.Acquire(t.Context(), weir.Call{})
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, q)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := acquire(t.Context(), u, weir.Call{}); err != nil {
				t.Error(err)
			}
		})
		pass(100 * ms) // the store had no units, and the call waits
		if err := u.Pause(pause.OfLimit("most", "", ""), 3*sec, true); err != nil {
			t.Fatal(err)
		}
		before := c.n.Load()
		pass(20 * ms)
		sent[0].Report(errUnsent.O) // its unit returns
		pass(2 * sec)
		if n := c.n.Load() - before; n > 1000 {
			t.Errorf("the clock was read %d times in 2 s of a pause", n)
		}
		wg.Wait()
		_ = f.Close(context.Background())
	})
}

// If the driver of the calls that waited for a pause is late, a new call that need not wait does not go first.
func TestNoTryGoesBeforeThoseWhoRested(t *testing.T) {
	for name, what := range map[string]pause.Subject{"all": pause.All(), "key": pause.OfLimit("most", "user", "a")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := steady(scoped(rate("most", 1, sec, 1), "user"))
				p.MaxWait = 60 * sec
				u := open(t, p, weir.Options{Clock: drowsy{clock.System}})
				if err := u.Pause(what, sec, true); err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					if _, err := acquire(t.Context(), u, of("a")); err != nil {
						t.Error(err)
					}
				})
				pass(sec + 20*ms)
				var q weir.Permit
				if u.Try(of("a"), &q).Allowed {
					t.Error("it went before one that rested")
				}
				wg.Wait()
			})
		})
	}
}
