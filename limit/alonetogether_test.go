package limit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/clock"
)

// A call that one limit refuses while the store is away takes nothing of the others, and
// nothing of it is owed afterwards.
func TestARefusedCallTakesNothingWithoutTheStore(t *testing.T) {
	for _, other := range []Limit{
		{Name: "tokens", Unit: "tokens", Rate: bucket.Rate{Amount: 10_000, Per: time.Second}},
		{Name: "tokens", Unit: "tokens", Shape: Rolling, Rate: bucket.Rate{Amount: 10_000, Per: 5 * time.Second}},
		{Name: "tokens", Unit: "tokens", Shape: Fixed, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day},
	} {
		for _, order := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &faulty{Store: NewMemory(nil)}
				few := Limit{Name: "few", Rate: bucket.Rate{Amount: 3, Per: 10 * time.Second, Burst: 3}}
				fleets, regs := fleetOf(t, 1, s, few, FleetOptions{})
				more, err := NewShared(clock.System.Now(), other, fleets[0].Group("up"))
				if err != nil {
					t.Fatal(err)
				}
				charges := []Charge{{regs[0], "", 1}, {more, "", 100}}
				if order {
					charges[0], charges[1] = charges[1], charges[0]
				}
				try := func(times int, gap time.Duration) (went int64) {
					for range times {
						if ok, _, err := goOne(context.Background(), clock.System.Now(), charges...); ok {
							went++
						} else if err != nil {
							t.Error(err)
						}
						time.Sleep(gap)
					}
					return went
				}
				before := try(30, time.Second)
				s.down.Store(true)
				time.Sleep(15 * time.Second)
				alone := fleets[0].spent.Load()
				went := try(300, 10*time.Millisecond)
				if went == 0 || went > 4 {
					t.Errorf("%v: %d of 300 went in 3s, want 3", other, went)
				}
				if took := fleets[0].spent.Load() - alone; took != went*101 {
					t.Errorf("%v: %d went, and took %d units of both limits, want %d", other, went, took, went*101)
				}
				s.down.Store(false)
				time.Sleep(3 * time.Second)
				if other.Shape == Fixed {
					if left := more.Get(0, "").Look(clock.System.Now()).Left; left > 100_000-100*before || left < 100_000-100*(before+went)-10_000 {
						t.Errorf("%d are left of the quota after %d calls", left, before+went)
					}
				}
			})
		}
	}
}
