package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// countedAsks is a store that counts its requests.
type countedAsks struct {
	Store
	n atomic.Int64
}

func (s *countedAsks) Take(ctx context.Context, a *Ask) error {
	if len(a.Claims) > 0 {
		s.n.Add(1)
	}
	return s.Store.Take(ctx, a)
}

// Calls get the last units of a quota from a slow store as they do from a fast one, with one request.
func TestASlowStoreGivesTheLastOfAQuota(t *testing.T) {
	for name, both := range map[string]bool{"a quota": false, "a quota and a rate": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rate := limit.Limit{Name: "b", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
				quota := limit.Limit{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 3}, Every: bucket.Day}
				s := &countedAsks{Store: farAway{NewMemory(nil), 600 * time.Millisecond}}
				f, regs := groupOf(t, s, Options{}, rate, quota)
				defer func() { _ = f.Close(context.Background()) }()
				for range 300 {
					_, _, _ = goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Cost: 1})
					time.Sleep(100 * time.Millisecond)
				}
				charges := []limit.Charge{{Registry: regs[1], Cost: 1}}
				if both {
					charges = append(charges, limit.Charge{Registry: regs[0], Cost: 1})
				}
				for i := range 6 {
					n, begin := s.n.Load(), clock.System.Now()
					ok, v, err := goOne(context.Background(), begin+30*time.Second, charges...)
					took, asks := clock.System.Now()-begin, s.n.Load()-n
					if want := i < 3; ok != want || took > 1500*time.Millisecond || asks > 2 {
						t.Errorf("call %d of 3 a day: %v %+v %v after %v and %d asks, want %v within two round trips", i+1, ok, v, err, took, asks, want)
					}
				}
			})
		})
	}
}

// While a call waits for another limit, the store is asked for the units of a quota that it needs, but not at
// each round trip.
func TestASlowStoreIsAskedForAQuotaAsFarAsItIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := limit.Limit{Name: "b", Rate: bucket.Rate{Amount: 60, Per: time.Minute, Burst: 30}}
		quota := limit.Limit{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1000}, Every: bucket.Day}
		s := &countedAsks{Store: farAway{NewMemory(nil), 600 * time.Millisecond}}
		f, regs := groupOf(t, s, Options{}, rate, quota)
		defer func() { _ = f.Close(context.Background()) }()
		for range 300 {
			_, _, _ = goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Cost: 1})
			time.Sleep(100 * time.Millisecond)
		}
		n, begin := s.n.Load(), clock.System.Now()
		ok, v, err := goOne(context.Background(), begin+30*time.Second, limit.Charge{Registry: regs[1], Cost: 2}, limit.Charge{Registry: regs[0], Cost: 10})
		if took := clock.System.Now() - begin; !ok || took < 5*time.Second {
			t.Errorf("%v %+v %v after %v, want a call that waits for the rate", ok, v, err, took)
		}
		if asks := s.n.Load() - n; asks > 2 {
			t.Errorf("the store was asked %d times, want 2 at most", asks)
		}
	})
}
