package weir_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// letsGo is a custom gate that admits calls only from an instant on, all together.
type letsGo struct{ at time.Duration }

func (g letsGo) Admit(ctx context.Context, _ weir.Call) (func(outcome.Outcome), error) {
	return nil, clock.System.Sleep(ctx, g.at-clock.System.Now())
}

// Calls that wait in a custom gate do not accumulate units of the limits: they stay within them afterwards.
func TestCallsThatAGateHoldsGoWithinTheLimitAfterwards(t *testing.T) {
	rolling := rate("all", 10, sec, 0)
	rolling.Shape = limit.Rolling
	for name, l := range map[string]limit.Limit{"bucket": rate("all", 10, sec, 1), "rolling": rolling} {
		for _, kept := range []string{"here", "leased", "in a store"} {
			synctest.Test(t, func(t *testing.T) {
				p := steady(l)
				p.MaxWait = time.Minute
				o := weir.Options{}
				switch kept {
				case "leased":
					o.Fleet = fleet.New(fleet.NewMemory(nil), fleet.Options{})
				case "in a store":
					o.Fleet = fleet.New(fleet.NewMemory(nil), fleet.Options{Lease: -1})
				}
				o.Gates = []weir.Gate{letsGo{clock.System.Now() + 5*sec}}
				u := open(t, p, o)
				var mu sync.Mutex
				var went []time.Duration
				var wg sync.WaitGroup
				for range 30 {
					wg.Go(func() {
						permit, err := u.Acquire(t.Context(), weir.Call{})
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						defer mu.Unlock()
						if now := clock.System.Now(); now-permit.Allowed() > 10*ms {
							t.Errorf("%s, %s: allowed at %v, it goes at %v", name, kept, permit.Allowed(), now)
						}
						went = append(went, permit.Allowed())
						permit.Report(outcome.Outcome{Class: outcome.OK})
					})
				}
				wg.Wait()
				slices.Sort(went)
				for i := range went[min(11, len(went)):] {
					if d := went[i+11] - went[i]; d < sec {
						t.Fatalf("%s, %s: 12 calls went within %v", name, kept, d)
					}
				}
			})
		}
	}
}
