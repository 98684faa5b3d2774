package limit

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/clock"
)

// tolled is a store that counts what it is told is owed.
type tolled struct {
	*faulty
	owed atomic.Int64
}

func (s *tolled) Take(ctx context.Context, a *Ask) error {
	err := s.faulty.Take(ctx, a)
	for i := range a.Settle {
		if err == nil {
			s.owed.Add(a.Settle[i].Owe)
		}
	}
	return err
}

func TestTheStoreIsAwayAfterThreeFailuresAndHearsWhatWentMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tolled{faulty: &faulty{Store: NewMemory(nil)}}
		var failed, away atomic.Int32
		events := FleetEvents{
			Called: func(c StoreCall) {
				if c.Err != nil {
					failed.Add(1)
				}
			},
			Fallback: func(e FallbackEvent) {
				if e.Away {
					away.Store(failed.Load())
				}
			},
		}
		l := Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
		_, regs := fleetOf(t, 1, s, l, FleetOptions{Events: events})
		calls := func(n int) (went int64) {
			for range n { // 50 a second
				if ok, _, _ := goOne(context.Background(), clock.System.Now()+time.Second, Charge{regs[0], "", 1}); ok {
					went++
				}
				time.Sleep(20 * time.Millisecond)
			}
			return went
		}
		calls(250)
		s.down.Store(true)
		if went := calls(100); went < 90 {
			t.Errorf("%d of 100 went while the store was away", went)
		}
		if n := away.Load(); n != 3 {
			t.Errorf("away after %d failed calls, want 3", n)
		}
		s.down.Store(false)
		calls(10)
		if owed := s.owed.Load(); owed < 25 || owed > 60 { // what still counts of the 100: about a second of its own rate
			t.Errorf("the store was told of %d units, want about a second of 50", owed)
		}
	})
}
