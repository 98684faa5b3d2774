package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func TestPrioritiesThatAreNoneAreTakenForTheNearest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(NewMemory(nil), Options{})
		f.Start()
		defer func() { _ = f.Close(context.Background()) }()
		r, err := limit.NewShared(0, limit.Limit{Name: "requests", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		now := f.clock.Now()
		for _, prio := range []limit.Priority{-128, -2, 2, 127} {
			var p limit.Charges
			p.Add(limit.Charge{Registry: r, Cost: 1})
			v := p.Take(now)
			for v.Ask {
				if v, err = p.Fetch(context.Background(), now, now+time.Second, prio); err != nil || !v.OK {
					t.Fatalf("priority %d: %+v, %v", prio, v, err)
				}
				v = p.Take(now)
			}
			p.Settle(now, nil)
			time.Sleep(3 * time.Second) // grants have expired
			now = f.clock.Now()
		}
	})
}
