package limit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
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

// What stands by of a quota is no more than the process has used of it: so much is lost
// with a crash. A process that ends gives it back.
func TestWhatStandsByIsNoMoreThanWasUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory(nil)
		quota := Limit{Name: "day", Shape: Fixed, Rate: bucket.Rate{Amount: 1_000_000}, Every: bucket.Day}
		f := NewFleet(store, FleetOptions{})
		f.Start()
		r, err := NewShared(clock.System.Now(), quota, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		used := int64(0)
		for range 120 {
			if ok, _, _ := goOne(context.Background(), clock.System.Now()+time.Second, Charge{r, "", 1}); ok {
				used++
			}
			time.Sleep(500 * time.Millisecond)
		}
		if by := poolOf(r.Get(0, "")).own.standby.left; by == 0 || by > used {
			t.Errorf("%d stand by after %d were used", by, used)
		}
		if err := f.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		_, regs := fleetOf(t, 1, store, quota, FleetOptions{})
		if ok, _, err := goOne(context.Background(), clock.System.Now()+time.Second, Charge{regs[0], "", 1}); !ok || err != nil {
			t.Fatal(err)
		}
		if left := regs[0].Get(0, "").Look(clock.System.Now()).Left; left < 1_000_000-used-2 {
			t.Errorf("%d are left after %d were used: what stood by is lost", left, used)
		}
	})
}

// A call that costs more than this process's part of the limit ever holds is refused at once,
// and says so, however long its caller would wait.
func TestACallTooDearForItsPartIsRefusedAtOnce(t *testing.T) {
	for _, l := range []Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 250_000, Per: time.Minute, Burst: 10_000}},
		{Name: "l", Shape: Rolling, Rate: bucket.Rate{Amount: 10_000, Per: 10 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &faulty{Store: NewMemory(nil)}
			_, regs := fleetOf(t, 2, s, l, FleetOptions{})
			for range 200 {
				for _, r := range regs {
					_, _, _ = goOne(context.Background(), clock.System.Now(), Charge{r, "", 100})
				}
				time.Sleep(100 * time.Millisecond)
			}
			s.down.Store(true)
			time.Sleep(30 * time.Second)
			begin := clock.System.Now()
			ok, v, err := goOne(context.Background(), begin+time.Hour, Charge{regs[0], "", 5500})
			if took := clock.System.Now() - begin; ok || err != nil || v.Lack != LacksPart || took > 100*time.Millisecond {
				t.Errorf("%v: after %v: %v %+v %v", l, took, ok, v, err)
			}
			if ok, v, err := goOne(context.Background(), clock.System.Now()+time.Minute, Charge{regs[0], "", 100}); !ok || err != nil {
				t.Errorf("%v: a cheap one: %+v %v", l, v, err)
			}
			s.down.Store(false)
		})
	}
}
