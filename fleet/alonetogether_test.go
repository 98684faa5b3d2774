package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// During an outage, a call that one limit refuses takes no units of its other limits and causes no debt.
func TestARefusedCallTakesNothingWithoutTheStore(t *testing.T) {
	for _, other := range []limit.Limit{
		{Name: "tokens", Unit: "tokens", Rate: bucket.Rate{Amount: 10_000, Per: time.Second}},
		{Name: "tokens", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 10_000, Per: 5 * time.Second}},
		{Name: "tokens", Unit: "tokens", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day},
	} {
		for _, order := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &faulty{Store: NewMemory(nil)}
				few := limit.Limit{Name: "few", Rate: bucket.Rate{Amount: 3, Per: 10 * time.Second, Burst: 3}}
				fleets, regs := fleetOf(t, 1, s, few, Options{})
				more, err := limit.NewShared(clock.System.Now(), other, fleets[0].Group("up"))
				if err != nil {
					t.Fatal(err)
				}
				charges := []limit.Charge{{Registry: regs[0], Key: "", Cost: 1}, {Registry: more, Key: "", Cost: 100}}
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
				if other.Shape == limit.Calendar {
					if left := more.Get(0, "").Look(clock.System.Now()).Left; left > 100_000-100*before || left < 100_000-100*(before+went)-10_000 {
						t.Errorf("%d are left of the quota after %d calls", left, before+went)
					}
				}
			})
		}
	}
}

// The standby of a quota is not larger than the usage of the process, since a crash loses it. A process that
// ends returns it.
func TestWhatStandsByIsNoMoreThanWasUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemory(nil)
		quota := limit.Limit{Name: "day", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1_000_000}, Every: bucket.Day}
		f := New(store, Options{})
		f.Start()
		r, err := limit.NewShared(clock.System.Now(), quota, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		used := int64(0)
		for range 120 {
			if ok, _, _ := goOne(context.Background(), clock.System.Now()+time.Second, limit.Charge{Registry: r, Key: "", Cost: 1}); ok {
				used++
			}
			time.Sleep(500 * time.Millisecond)
		}
		if by := leaseOf(r.Get(0, "")).own.standby.left; by == 0 || by > used {
			t.Errorf("%d stand by after %d were used", by, used)
		}
		if err := f.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		_, regs := fleetOf(t, 1, store, quota, Options{})
		if ok, _, err := goOne(context.Background(), clock.System.Now()+time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1}); !ok || err != nil {
			t.Fatal(err)
		}
		if left := regs[0].Get(0, "").Look(clock.System.Now()).Left; left < 1_000_000-used-2 {
			t.Errorf("%d are left after %d were used: what stood by is lost", left, used)
		}
	})
}

// Units in standby do not cause refusals while the store is available: calls get the last units of a quota.
func TestTheLastOfAQuotaDoesNotStandBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := limit.Limit{Name: "month", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1000}, Every: bucket.Month}
		_, regs := fleetOf(t, 1, NewMemory(nil), quota, Options{})
		goes := func(cost int64) bool {
			ok, _, err := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Key: "", Cost: cost})
			return ok && err == nil
		}
		used := int64(0)
		for range 300 {
			if goes(1) {
				used++
			}
			time.Sleep(100 * time.Millisecond)
		}
		if leaseOf(regs[0].Get(0, "")).own.standby.left == 0 {
			t.Fatal("nothing stands by")
		}
		for range 50 {
			if goes(quota.Amount - used) {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Errorf("of %d units %d were used, and the rest cannot be had", quota.Amount, used)
	})
}

// A call that costs more than this process's part of the limit is refused immediately with that reason, even if
// its caller would wait longer.
func TestACallTooDearForItsPartIsRefusedAtOnce(t *testing.T) {
	for _, l := range []limit.Limit{
		{Name: "l", Rate: bucket.Rate{Amount: 250_000, Per: time.Minute, Burst: 10_000}},
		{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 10_000, Per: 10 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &faulty{Store: NewMemory(nil)}
			_, regs := fleetOf(t, 2, s, l, Options{})
			for range 200 {
				for _, r := range regs {
					_, _, _ = goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: r, Key: "", Cost: 100})
				}
				time.Sleep(100 * time.Millisecond)
			}
			s.down.Store(true)
			time.Sleep(30 * time.Second)
			begin := clock.System.Now()
			ok, v, err := goOne(context.Background(), begin+time.Hour, limit.Charge{Registry: regs[0], Key: "", Cost: 5500})
			if took := clock.System.Now() - begin; ok || err != nil || v.Lack != limit.LacksPart || took > 100*time.Millisecond {
				t.Errorf("%v: after %v: %v %+v %v", l, took, ok, v, err)
			}
			if ok, v, err := goOne(context.Background(), clock.System.Now()+time.Minute, limit.Charge{Registry: regs[0], Key: "", Cost: 100}); !ok || err != nil {
				t.Errorf("%v: a cheap one: %+v %v", l, v, err)
			}
			s.down.Store(false)
		})
	}
}
