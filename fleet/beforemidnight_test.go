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

// evening is ten minutes before midnight. It must be called before there are processes: otherwise a day of
// heartbeats would be simulated.
func evening() {
	time.Sleep(time.Until(time.Now().Truncate(24 * time.Hour).Add(24*time.Hour - 10*time.Minute)))
}

// A unit of a quota's share that is taken just before midnight is valid until then. An invalid unit would be
// returned and taken again forever.
func TestAShareTakenBeforeMidnightIsGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evening()
		quota := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day}
		s := &faulty{Store: NewMemory(nil)}
		s.down.Store(true)
		f, regs := groupOf(t, s, Options{Without: Without{Share: 0.5}}, quota)
		midnight := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
		time.Sleep(time.Until(midnight.Add(-time.Millisecond)))
		now := clock.System.Now()
		if ok, v, err := goOne(context.Background(), now+100*time.Microsecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1}); !ok || err != nil {
			t.Errorf("a call goes as %v %+v, %v", ok, v, err)
		}
		if _, by, ok := leaseOf(regs[0].Get(now, "")).drawOwn(now, 1); !ok || by.passed(now, clock.System) || !by.passed(now+time.Millisecond, clock.System) {
			t.Errorf("taken %v, good before %v at %v; want good until midnight", ok, by.at, now)
		}
		s.down.Store(false)
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A call that waits just before midnight for a bucket besides a quota's share sleeps. It does not take and
// return units forever, which would stop virtual time.
func TestWhoWaitsForAShareBeforeMidnightSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evening()
		quota := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day}
		rate := limit.Limit{Name: "r", Rate: bucket.Rate{Amount: 500, Per: time.Second, Burst: 20}}
		s := &faulty{Store: NewMemory(nil)}
		s.down.Store(true)
		f, regs := groupOf(t, s, Options{Without: Without{Share: 0.5}}, quota, rate)
		midnight := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
		time.Sleep(time.Until(midnight.Add(-30 * time.Millisecond)))
		n := 0
		for time.Now().Before(midnight.Add(30 * time.Millisecond)) {
			at := time.Now()
			ok, v, err := goOne(context.Background(), clock.System.Now()+100*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1}, limit.Charge{Registry: regs[1], Key: "", Cost: 1})
			if n++; err != nil || time.Since(at) > 50*time.Millisecond {
				t.Errorf("%d: %v %+v %v after %v", n, ok, v, err, time.Since(at))
			}
			if !ok {
				time.Sleep(time.Millisecond)
			}
		}
		s.down.Store(false)
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
