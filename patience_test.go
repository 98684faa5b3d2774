package weir_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// A rush is callers who come at random and leave after their patience.
type rush struct {
	rate     float64 // calls a second
	patience time.Duration
	told     bool // weir is told the patience
	lasts    time.Duration
}

// fate is how the calls of a second went.
type fate struct{ calls, good, refused int }

// run makes the calls, each of 100 ms, and says how they went by the second in which they came.
func (r rush) run(t *testing.T, u *weir.Upstream, seed uint64) []fate {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	all := make([]fate, r.lasts/sec)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for begin := time.Now(); ; {
		time.Sleep(time.Duration(rng.ExpFloat64() / r.rate * 1e9))
		at := time.Since(begin)
		if at >= r.lasts {
			break
		}
		wg.Go(func() {
			err := r.call(u)
			mu.Lock()
			defer mu.Unlock()
			f := &all[at/sec]
			f.calls++
			if err == nil {
				f.good++
			} else if _, ok := errors.AsType[*weir.Refusal](err); ok {
				f.refused++
			}
		})
	}
	wg.Wait()
	return all
}

func (r rush) call(u *weir.Upstream) error {
	ctx := context.Background()
	if r.told {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, r.patience)
		defer end()
	} else {
		var leave context.CancelFunc
		ctx, leave = context.WithCancel(ctx)
		defer time.AfterFunc(r.patience, leave).Stop()
	}
	_, err := once(ctx, u)
	return err
}

// once is a call of 100 ms.
func once(ctx context.Context, u *weir.Upstream) (struct{}, error) {
	return weir.Do(ctx, u, weir.Call{Safe: true}, func(ctx context.Context) (struct{}, error) {
		select {
		case <-ctx.Done():
			return struct{}{}, context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
			return struct{}{}, nil
		}
	})
}

func together(all []fate) (sum fate) {
	for _, f := range all {
		sum.calls, sum.good, sum.refused = sum.calls+f.calls, sum.good+f.good, sum.refused+f.refused
	}
	return sum
}

// fifty is what ships, with a limit of 50/s and nothing said of how long calls may wait.
func fifty(fair bool) weir.Policy {
	p := weir.Policy{Limits: []limit.Limit{rate("all", 50, sec, 5)}}
	if fair {
		p.Fair.By = "tenant"
	}
	return p
}

// Where more comes than the limit lets go and callers leave, what the limit lets go is still
// of use, but for the first seconds. Before, it was none at 200 calls a second.
func TestCallersWhoLeaveDoNotUseUpTheLimit(t *testing.T) {
	for i := range 8 {
		fair, told, shared := i&1 > 0, i&2 > 0, i&4 > 0
		for rate, least := range map[float64]int{60: 1800, 200: 1980} {
			synctest.Test(t, func(t *testing.T) {
				var o weir.Options
				if shared {
					o.Fleet = limit.NewFleet(limit.NewMemory(nil), limit.FleetOptions{})
					o.Fleet.Start()
				}
				u := open(t, fifty(fair), o)
				all := rush{patience: sec, rate: rate, told: told, lasts: 60 * sec}.run(t, u, 1)
				if got := together(all[20:]); got.good < least || got.good > 2050 {
					t.Errorf("%v/s, fair %v, told %v, shared %v: %+v from 20 s on, want 2,000 good", rate, fair, told, shared, got)
				}
				u.Close()
				if shared {
					_ = o.Fleet.Close(context.Background())
				}
			})
		}
	}
}

// Who stays waits, up to the ten seconds that ship, whoever else leaves: some who leave, or
// a program that ends with all of its calls, do not shorten the wait.
func TestWhoStaysWaits(t *testing.T) {
	for _, fair := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			u := open(t, fifty(fair), weir.Options{})
			var wg sync.WaitGroup
			wg.Go(func() { // a program of 100 calls at once, which ends
				ctx, end := context.WithCancel(t.Context())
				for range 100 {
					wg.Go(func() { _, _ = once(ctx, u) })
				}
				time.Sleep(1500 * time.Millisecond)
				end()
			})
			time.Sleep(3 * sec)
			wg.Go(func() { rush{patience: sec, rate: 5, lasts: 30 * sec}.run(t, u, 1) })
			for range 20 { // 450 calls at once, which are let go within 9 s
				for range 450 {
					wg.Go(func() {
						if _, err := once(context.Background(), u); err != nil {
							t.Errorf("fair %v: %v", fair, err)
						}
					})
				}
				time.Sleep(12 * sec)
			}
			wg.Wait()
		})
	}
}

// Where the policy says how long calls may wait, they may.
func TestAWaitThatIsSaidHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, with(fifty(true), func(p *weir.Policy) { p.MaxWait = 10 * sec }), weir.Options{})
		if got := together(rush{rate: 60, patience: sec, lasts: 30 * sec}.run(t, u, 1)); got.refused != 0 {
			t.Errorf("%+v, want nobody refused", got)
		}
	})
}

// A minute after nobody has left any more, calls wait as long as before.
func TestPatienceIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, fifty(false), weir.Options{})
		rush{patience: sec, rate: 100, lasts: 20 * sec}.run(t, u, 1)
		if d := u.Look(0).Patience; d != 500*time.Millisecond {
			t.Errorf("calls wait for %v at most, want half a second", d)
		}
		time.Sleep(61 * sec)
		if d := u.Look(0).Patience; d != 0 {
			t.Errorf("calls wait for %v at most after a minute, want as the policy says", d)
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := once(context.Background(), u); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	})
}

// A caller of Acquire waits for its turn alone: it waits as long as it says, whoever leaves.
func TestWhoWaitsForTheTurnAloneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, fifty(false), weir.Options{})
		var wg sync.WaitGroup
		wg.Go(func() { rush{patience: sec, rate: 100, lasts: 20 * sec}.run(t, u, 1) })
		time.Sleep(10 * sec)
		for range 50 {
			wg.Go(func() {
				ctx, end := context.WithTimeout(context.Background(), 9*sec)
				defer end()
				if p, err := u.Acquire(ctx, weir.Call{}); err != nil {
					t.Error(err)
				} else {
					p.Report(ok)
				}
			})
		}
		wg.Wait()
		if u.Look(0).Patience == 0 {
			t.Error("nobody has left; then this test proves nothing")
		}
	})
}
