package fleet

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Calls that are served without the store and reports of returned units lock group, queue and lease in the same
// order. Otherwise they would deadlock.
func TestGoingAloneAndGivingBackDoNotWaitForEachOther(t *testing.T) {
	s := &faulty{Store: NewMemory(nil)}
	s.down.Store(true)
	f := New(s, Options{Silence: time.Millisecond, Without: Without{Share: 0.5}})
	f.Start()
	defer f.Close(context.Background())
	r, err := limit.NewShared(clock.System.Now(), limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1_000_000, Per: time.Second}}, f.Group("up"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for n := range 50_000 {
				now := clock.System.Now()
				_, _, _ = goOne(context.Background(), now+time.Millisecond, limit.Charge{Registry: r, Key: "", Cost: 1})
				if n%100 == 0 {
					s.down.Store(n%(200+i) == 0)
				}
			}
		})
		wg.Go(func() {
			for range 50_000 {
				_ = f.giveBack(context.Background(), false)
			}
		})
	}
	wg.Wait()
}
