package fleet

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A call that is refused because of its high cost does not cause other refusals. Cheap calls behind it and
// later ones are served as soon as there are enough units for them.
func TestADearCallRefusesNoCheapOnes(t *testing.T) {
	for _, c := range []struct {
		name     string
		burst    int64 // set when all calls wait; 0 leaves it
		patience time.Duration
		dear     int64
		behind   int
	}{
		{"its turn would come too late", 0, 300 * time.Millisecond, 60, 4}, {"it costs more than there can be now", 50, 5 * time.Second, 80, 4},
		{"it is alone", 0, 300 * time.Millisecond, 60, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
				_, regs := fleetOf(t, 1, slow{NewMemory(nil), 2 * time.Millisecond}, l, Options{Lease: -1})
				time.Sleep(7 * time.Second) // until it has a part
				for range 100 {
					if ok, v, err := goOne(context.Background(), clock.System.Now()+time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1}); !ok {
						t.Fatal(v, err)
					}
				}
				var wg sync.WaitGroup
				call := func(cost int64, want bool) {
					wg.Go(func() {
						begin := clock.System.Now()
						ok, v, err := goOne(context.Background(), begin+c.patience, limit.Charge{Registry: regs[0], Key: "", Cost: cost})
						if ok != want || err != nil {
							t.Errorf("a call of %d: %v after %v, %+v, %v", cost, ok, clock.System.Now()-begin, v, err)
						}
					})
					time.Sleep(100 * time.Microsecond)
				}
				call(c.dear, false)
				for range c.behind {
					call(1, true)
				}
				if c.burst > 0 {
					l.Rate.Burst = c.burst
					if err := regs[0].Set(clock.System.Now(), l); err != nil {
						t.Error(err)
					}
				}
				for range 10 {
					time.Sleep(3 * time.Millisecond)
					call(1, true)
				}
				wg.Wait()
			})
		})
	}
}
