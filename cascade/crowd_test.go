package cascade_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/clock"
)

// An upstream is up or down, takes some time, and counts calls.
type upstream struct {
	down   atomic.Bool
	takes  time.Duration
	asked  atomic.Int64
	probed atomic.Int64 // start of the latest probe; 0 if its outcome is known
}

// A crowd calls a cascade whose three upstreams go up and down at random.
type crowd struct {
	t    *testing.T
	seed uint64
	c    *cascade.Cascade
	ups  [3]upstream
}

func (w *crowd) ask(ctx context.Context, turn cascade.Turn) (int, error) {
	if turn.Index >= len(w.ups) {
		return turn.Index, nil
	}
	u := &w.ups[turn.Index]
	u.asked.Add(1)
	if turn.Probe {
		now := int64(clock.System.Now())
		if before := u.probed.Swap(now); before > 0 && now-before < int64(time.Second) {
			w.t.Errorf("seed %d: two probes of %s within %v", w.seed, turn.Tier, time.Duration(now-before))
		}
		defer u.probed.CompareAndSwap(now, 0)
	}
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(u.takes):
	}
	if u.down.Load() {
		return 0, down
	}
	return turn.Index, nil
}

// call makes one call and checks that the right tier answers in time.
func (w *crowd) call() {
	begin := time.Now()
	r, err := cascade.Run(w.t.Context(), w.c, w.ask)
	if err != nil || r.Value != r.Index {
		w.t.Errorf("seed %d: got %+v, %v", w.seed, r, err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		w.t.Errorf("seed %d: took %v", w.seed, took)
	}
	if len(r.Above) != r.Index {
		w.t.Errorf("seed %d: %+v: a tier was left out", w.seed, r)
	}
}

func (w *crowd) allUp() bool {
	for _, v := range w.c.View() {
		if v.Phase != breaker.Closed {
			return false
		}
	}
	return true
}

func (w *crowd) live(r *rand.Rand) {
	var wg sync.WaitGroup
	for range 1 + r.IntN(8) {
		every := time.Duration(1+r.IntN(2000)) * time.Millisecond
		wg.Go(func() {
			for begin := time.Now(); time.Since(begin) < 12*time.Second; time.Sleep(every) {
				w.call()
			}
		})
	}
	for begin := time.Now(); time.Since(begin) < 12*time.Second; time.Sleep(time.Duration(1+r.IntN(9)) * time.Second) {
		w.ups[r.IntN(3)].down.Store(r.IntN(2) == 0)
	}
	wg.Wait()
}

// recovers brings all upstreams back and checks that each open breaker is at most a second from its probe.
func (w *crowd) recovers() {
	for i := range w.ups {
		w.ups[i].down.Store(false)
	}
	begin := time.Now()
	for !w.allUp() {
		// A tier is asked only if the tiers above have no answer. One call that asks each tier in turn brings all of
		// them back.
		for first := range w.ups {
			_, _ = cascade.Run(w.t.Context(), w.c, func(ctx context.Context, turn cascade.Turn) (int, error) {
				if turn.Index < first {
					return 0, cascade.ErrPass
				}
				return w.ask(ctx, turn)
			})
		}
		time.Sleep(100 * time.Millisecond)
		if time.Since(begin) > 2500*time.Millisecond+3*200*time.Millisecond {
			w.t.Fatalf("seed %d: not up after %v: %+v", w.seed, time.Since(begin), w.c.View())
		}
	}
}

func TestAnyCrowd(t *testing.T) {
	first := rand.Uint64()
	for i := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(first+i, 0))
			w := &crowd{t: t, seed: first + i, c: newCascade(t, cascade.Config{Tiers: five(), Deadline: 10 * time.Second})}
			for j := range w.ups {
				w.ups[j].takes = time.Duration(r.IntN(6000)) * time.Millisecond
			}
			w.live(r)
			for j := range w.ups {
				w.ups[j].takes = time.Duration(r.IntN(200)) * time.Millisecond
			}
			w.recovers()
		})
		if t.Failed() {
			return
		}
	}
}

// With everything down, 100 calls in 10 s all get an answer. They make at most 10 attempts at each tier: 3 failures, a
// probe after 1 s, and then one every 1.5 s.
func TestEverythingDown(t *testing.T) {
	for _, callers := range []int{1, 10} {
		synctest.Test(t, func(t *testing.T) {
			w := &crowd{t: t, c: newCascade(t, cascade.Config{Tiers: five()})}
			for i := range w.ups {
				w.ups[i].down.Store(true)
			}
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range 100 / callers {
						r, err := cascade.Run(t.Context(), w.c, w.ask)
						if err != nil || r.Tier != "static" || !r.Degraded {
							t.Errorf("got %+v, %v", r, err)
						}
						time.Sleep(time.Duration(callers) * 100 * time.Millisecond)
					}
				})
			}
			wg.Wait()
			for i := range w.ups {
				// Calls that are in flight when a tier fails for the third time are counted in addition.
				if n := w.ups[i].asked.Load(); n > int64(10+callers-1) {
					t.Errorf("%d callers: tier %d was asked %d times", callers, i, n)
				}
			}
		})
	}
}

// Uses real goroutines and the real clock, for the race detector.
func TestManyCallersAtOnce(t *testing.T) {
	var told atomic.Int64
	tiers := five()
	for i := range 3 {
		tiers[i].Health = breaker.Config{Failures: 1, FirstOpen: 1, Open: 1000, MaxOpen: 1000, Successes: 1}
	}
	c, err := cascade.New(cascade.Config{Tiers: tiers}, cascade.Options{Changed: func(cascade.Change) { told.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 0))
			for range 500 {
				res, err := cascade.Run(context.Background(), c, func(_ context.Context, turn cascade.Turn) (int, error) {
					if turn.Index < 3 && r.IntN(3) == 0 {
						return 0, down
					}
					return turn.Index, nil
				})
				if err != nil || res.Value != res.Index {
					t.Errorf("got %+v, %v", res, err)
				}
				switch r.IntN(50) {
				case 0:
					c.View()
				case 1:
					_ = c.Set(c.Config())
				case 2:
					c.Breaker("secondary").Reset(c.Now())
				}
			}
		})
	}
	wg.Wait()
	if told.Load() == 0 {
		t.Error("nobody was told")
	}
}
