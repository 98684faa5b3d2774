package designs

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// slowDown is S3's response while it throttles.
type slowDown struct{}

func (slowDown) Error() string { return "SlowDown" }
func (slowDown) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown", Undone: true}
}

// spell makes each of n processes with a store, or without one, make the calls simultaneously, and throttles a share of them.
// It returns the number of good calls and of retries.
func spell(t *testing.T, p weir.Policy, n, calls int, throttled float64, store fleet.Store) (good, retries int64) {
	t.Helper()
	r, mu := rand.New(rand.NewPCG(1, 2)), sync.Mutex{}
	fails := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return r.Float64() < throttled
	}
	var attempts, ended atomic.Int64
	var wg sync.WaitGroup
	for range n {
		var o weir.Options
		if store != nil {
			f := fleet.New(store, fleet.Options{})
			f.Start()
			defer func() { _ = f.Close(context.Background()) }()
			o.Fleet = f
		}
		u, err := weir.New("s3", p, o)
		if err != nil {
			t.Fatal(err)
		}
		defer u.Close()
		for range calls {
			wg.Go(func() {
				_, err := weir.Do(context.Background(), u, weir.Call{Operation: "put", Safe: true}, func(context.Context) (int, error) {
					attempts.Add(1)
					time.Sleep(20 * time.Millisecond)
					if fails() {
						return 0, slowDown{}
					}
					return 1, nil
				})
				if err == nil {
					ended.Add(1)
				}
			})
		}
	}
	wg.Wait()
	return ended.Load(), attempts.Load() - int64(n*calls)
}

var errGone = errors.New("gone")

// gone is an unreachable store.
type gone struct{ *fleet.Memory }

func (gone) Take(context.Context, *fleet.Ask) error                          { return errGone }
func (gone) Beat(context.Context, *fleet.Beat) (s fleet.Standing, err error) { return s, errGone }

// The preset of S3 bounds the retries of a complete fleet. Calls during a fault are not worse with the store, from the start of
// a fleet on. Nor does the bound make them worse without a store, or with an unreachable one.
func TestAFleetOfS3RepeatsNoMoreThanItsBudget(t *testing.T) {
	p := preset(t, "s3")
	if all := p.Budget.All; all.Amount != 105_000 || all.Per != time.Minute || all.Burst != 0 || p.Quota == nil {
		t.Fatalf("%+v and %+v", p.Budget, p.Quota)
	}
	unbounded := p
	unbounded.Budget.All = bucket.Rate{}
	few := p
	few.Budget.All.Amount = 60
	synctest.Test(t, func(t *testing.T) {
		bare, _ := spell(t, unbounded, 8, 40, 0.5, nil)
		for name, store := range map[string]fleet.Store{"no store": nil, "a store": fleet.NewMemory(nil), "a store that is gone": gone{fleet.NewMemory(nil)}} {
			good, retries := spell(t, p, 8, 40, 0.5, store)
			if t.Logf("%s: %d of 320 are good, %d without the bound, %d retries", name, good, bare, retries); good < 310 {
				t.Errorf("%s: %d of 320 calls are good, and %d without the bound", name, good, bare)
			}
		}
		if good, retries := spell(t, few, 8, 40, 0.5, fleet.NewMemory(nil)); retries > 60 || retries < 40 || good < 160 {
			t.Errorf("with 60 a minute for all: %d retries, %d good", retries, good)
		}
	})
}
