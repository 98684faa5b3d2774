package weirprom

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// goes is a store that can be made unavailable.
type goes struct {
	fleet.Store
	down atomic.Bool
}

func (s *goes) Take(ctx context.Context, a *fleet.Ask) error {
	if s.down.Load() {
		return errors.New("down")
	}
	return s.Store.Take(ctx, a)
}

func (s *goes) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if s.down.Load() {
		return fleet.Standing{}, errors.New("down")
	}
	return s.Store.Beat(ctx, b)
}

// TestSpentOfAnOutageAndWhatComesBack returns units during an outage of the store. The counter must not decrease, because that
// would panic.
func TestSpentOfAnOutageAndWhatComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &goes{Store: fleet.NewMemory(nil)}
		f := fleet.New(s, fleet.Options{Events: NewFleet(prometheus.NewRegistry()).Events()})
		f.Start()
		quota := limit.Limit{Name: "q", Shape: limit.Calendar, Unit: "tokens", Rate: bucket.Rate{Amount: 1_000_000}, Every: bucket.Day}
		r, err := limit.NewShared(clock.System.Now(), quota, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		one := func(n int64) *limit.Charges {
			var p limit.Charges
			p.Add(limit.Charge{Registry: r, Cost: n})
			now := clock.System.Now()
			for v := p.Take(now); p.Asks(v, time.Second); v = p.Take(clock.System.Now()) {
				if v, err := p.Fetch(context.Background(), now, now+time.Second, limit.Normal); err != nil || !v.OK {
					t.Fatal(v, err)
				}
			}
			return &p
		}
		for range 200 {
			one(10).Settle(clock.System.Now(), nil)
			time.Sleep(50 * time.Millisecond)
		}
		p := one(1000) // a call with a long response
		s.down.Store(true)
		time.Sleep(5 * time.Second)
		p.Settle(clock.System.Now(), map[string]int64{"tokens": 100})
		s.down.Store(false)
		time.Sleep(5 * time.Second)
		_ = f.Close(context.Background())
	})
}
