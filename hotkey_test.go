package weir_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A hotStore answers requests for one key late.
type hotStore struct {
	fleet.Store
}

func (s hotStore) Take(ctx context.Context, a *fleet.Ask) error {
	for i := range a.Claims {
		if a.Claims[i].Key == "hot" {
			time.Sleep(80 * time.Millisecond)
		}
	}
	return s.Store.Take(ctx, a)
}

// Hundreds of calls wait for one key, and each request for it takes 80 ms. Calls of other keys wait for none of that. Time is
// virtual, so that only waiting counts.
func TestCallsOfHotKeyDelayNoOtherKey(t *testing.T) {
	for name, maxWait := range map[string]time.Duration{"waiting": time.Second, "max_wait off": -1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := fleet.New(hotStore{fleet.NewMemory(nil)}, fleet.Options{})
				f.Start()
				defer func() { _ = f.Close(context.Background()) }()
				u, err := weir.New("api", weir.Policy{MaxWait: maxWait, Limits: []limit.Limit{
					{Name: "tenant", Scope: "tenant", Rate: bucket.Rate{Amount: 1000, Per: time.Second, Burst: 100}},
				}}, weir.Options{Fleet: f})
				if err != nil {
					t.Fatal(err)
				}
				defer u.Close()
				call := func(tenant string) (time.Duration, error) {
					begin := time.Now()
					p, err := u.Acquire(context.Background(), weir.Call{Keys: map[string]string{"tenant": tenant}})
					if err == nil {
						p.Report(outcome.Outcome{Class: outcome.OK})
					}
					return time.Since(begin), err
				}
				time.Sleep(2 * time.Second)
				var calls sync.WaitGroup
				for range 200 { // each wants 25 units a second: 5,000 in all
					calls.Go(func() {
						for range 50 {
							_, _ = call("hot")
							time.Sleep(40 * time.Millisecond)
						}
					})
				}
				for i := range 200 {
					time.Sleep(10*time.Millisecond + 13*time.Microsecond)
					if took, err := call([]string{"a", "b", "c", "d"}[i%4]); err != nil || took > time.Millisecond {
						t.Errorf("call %d of a calm key took %v: %v", i, took, err)
					}
				}
				calls.Wait()
			})
		})
	}
}
