package fleet

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Calls of many shared limits are combined like calls of few. They are served in order, at the rate of the
// scarcest limit.
func TestCallsOfManySharedLimits(t *testing.T) {
	for _, n := range []int{1, 6, 7, 64} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &lastGrant{Store: slow{NewMemory(nil), 5 * time.Millisecond}}
				f := New(s, Options{Lease: -1})
				var charges []limit.Charge
				for i := range n {
					l := limit.Limit{Name: fmt.Sprint("l", i), Rate: bucket.Rate{Amount: 10_000, Per: time.Second}}
					if i == n-1 {
						l.Rate = bucket.Rate{Amount: 100, Per: time.Second, Burst: 10}
					}
					r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
					if err != nil {
						t.Fatal(err)
					}
					charges = append(charges, limit.Charge{Registry: r, Cost: 1})
				}
				begin := clock.System.Now()
				var wg sync.WaitGroup
				for i := range 60 {
					wg.Go(func() {
						if ok, v, err := goOne(context.Background(), begin+time.Minute, charges...); !ok || err != nil {
							t.Errorf("call %d: %v, %v", i, v, err)
						}
					})
				}
				wg.Wait()
				if took := clock.System.Now() - begin; took < 500*time.Millisecond || took > 600*time.Millisecond {
					t.Errorf("60 calls took %v, want 0.5s and a little", took)
				}
				if len(f.Group("up").queues) > 1 {
					t.Errorf("%d queues, want one", len(f.Group("up").queues))
				}
				if err := f.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
