package fleet

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Calls of many users need units of one limit at the same time, and each user has its own queue. Together they
// hold no larger blocks of that limit than one queue.
func TestQueuesTogetherHoldATenth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near := slow{NewMemory(nil), 10 * time.Millisecond}
		fleets, regs := fleetOf(t, 1, near, limit.Limit{Name: "all", Rate: bucket.Rate{Amount: 2000, Per: time.Second}}, Options{})
		user := limit.Limit{Name: "user", Scope: "user", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
		users, err := limit.NewShared(clock.System.Now(), user, fleets[0].Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				of := limit.Charge{Registry: users, Key: strconv.Itoa(i), Cost: 1}
				for range 100 {
					if _, _, err := goOne(context.Background(), clock.System.Now()+time.Second, limit.Charge{Registry: regs[0], Cost: 1}, of); err != nil {
						t.Error(err)
					}
					time.Sleep(50 * time.Millisecond)
				}
			})
		}
		p, most := leaseOf(regs[0].Get(clock.System.Now(), "")), int64(0)
		for range 500 {
			time.Sleep(10 * time.Millisecond)
			most = max(most, p.held(clock.System.Now()))
		}
		wg.Wait()
		if tenth := p.spec().most() / 10; most == 0 || most > tenth {
			t.Errorf("up to %d units were held, want %d at most", most, tenth)
		}
	})
}
