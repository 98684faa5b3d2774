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

// stallsAt is a clock of a machine that stalls before the nth reading.
type stallsAt struct {
	clock.Clock
	n, reads atomic.Int32
}

func (c *stallsAt) Now() time.Duration {
	if c.reads.Add(1) == c.n.Load() {
		time.Sleep(700 * time.Millisecond)
	}
	return c.Clock.Now()
}

// lastGrant is a store that records when the request for its last grant arrived.
type lastGrant struct {
	Store
	at time.Duration
}

func (s *lastGrant) Take(ctx context.Context, a *Ask) error {
	at := clock.System.Now()
	err := s.Store.Take(ctx, a)
	if err == nil && a.Granted > 0 {
		s.at = at
	}
	return err
}

// The machine stalls at any reading of the clock between the request and the last check. No call uses units
// that have expired by then.
func TestNoStallLetsLateUnitsGo(t *testing.T) {
	for _, l := range []limit.Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}},
		{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: time.Second}},
	} {
		stalls := true
		for n := int32(1); stalls; n++ {
			synctest.Test(t, func(t *testing.T) {
				c, s := &stallsAt{Clock: clock.System}, &lastGrant{Store: NewMemory(nil)}
				f := New(s, Options{Lease: -1, Clock: c})
				r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
				if err != nil {
					t.Fatal(err)
				}
				begin := clock.System.Now()
				c.reads.Store(0)
				c.n.Store(n)
				ok, _, err := goOne(context.Background(), begin+time.Minute, limit.Charge{Registry: r, Cost: 1})
				if err != nil || !ok {
					t.Fatalf("%v, stall %d: %v, %v", l, n, ok, err)
				}
				now := clock.System.Now()
				if hold := f.Group("up").spec(l).hold; now-s.at >= hold {
					t.Errorf("%v, stall %d: let go %v after the store was asked, want within %v", l, n, now-s.at, hold)
				}
				stalls = c.reads.Load() >= n
			})
		}
	}
}
