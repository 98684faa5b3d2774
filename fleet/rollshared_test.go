package fleet

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A fleet uses almost all of a rolling limit, and no window exceeds it, with leases and without.
func TestARollingLimitOfAFleetIsUsed(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, c := range []struct {
		amount, cost int64
		per          time.Duration
	}{{100, 1, time.Second}, {5, 1, time.Minute}, {1000, 1, time.Minute}, {5000, 1, time.Minute}, {2_000_000, 3000, time.Minute}} {
		for _, lease := range []time.Duration{0, -1} {
			t.Run(fmt.Sprintf("%d/%v/lease %v", c.amount, c.per, lease), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := limit.Limit{Name: "l", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: c.amount, Per: c.per}}
					_, regs := fleetOf(t, 4, nearby(), l, Options{Lease: lease})
					calls, most := int64(campaign.Of(5_000, 15_000)), int64(campaign.Of(20, 100))
					windows := time.Duration(max(3, min(most, calls*c.cost/c.amount)))
					all := wanting(t, regs, c.cost, windows*c.per)
					worst, used := overUsed(l, all, 0)
					if worst > 0 {
						t.Errorf("%d over", worst)
					}
					if share := float64(used) / float64(c.amount) / float64(windows); share < 0.98 {
						t.Errorf("%.4f used", share)
					} else {
						t.Logf("%.4f used", share)
					}
				})
			})
		}
	}
}

// wanting makes callers of each registry request more than the limit for d, each call the same cost.
func wanting(t *testing.T, regs []*limit.Registry, cost int64, d time.Duration) (all []use) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	end := clock.System.Now() + d
	for _, r := range regs {
		for range 8 {
			wg.Go(func() {
				for clock.System.Now() < end {
					_, ok, err := take(context.Background(), r, cost, end)
					if err != nil {
						t.Error(err)
					}
					if now := clock.System.Now(); ok && now < end {
						mu.Lock()
						all = append(all, use{now, cost})
						mu.Unlock()
					} else {
						time.Sleep(end - now) // no more units are available before
					}
				}
			})
		}
	}
	wg.Wait()
	return all
}
