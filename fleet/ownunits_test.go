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

// TestRefusedCallsLeaveRollingLimits checks calls that another limit refuses during an outage. They change
// neither the units of a rolling limit nor its usage.
func TestRefusedCallsLeaveRollingLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, refusedToo := range []bool{false, true} {
			rolling := limit.Limit{Name: "w", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 120, Per: 10 * time.Second}}
			rate := limit.Limit{Name: "r", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}}
			s := &faulty{Store: NewMemory(nil)}
			f, regs := groupOf(t, s, Options{}, rolling, rate)
			cs := []limit.Charge{{Registry: regs[0], Key: "", Cost: 1}, {Registry: regs[1], Key: "", Cost: 1}}
			for range 300 {
				drainNow(cs...)
				time.Sleep(100 * time.Millisecond)
			}
			s.down.Store(true)
			time.Sleep(15 * time.Second)
			var went []int
			for range 6 {
				n := 0
				for range 100 {
					if refusedToo {
						n += drainNow(cs...) // until it is refused
						for range 5 {
							drainNow(cs...)
						}
					} else if ok, _, _ := goOne(context.Background(), clock.System.Now(), cs...); ok {
						n++
					}
					time.Sleep(100 * time.Millisecond)
				}
				if went = append(went, n); n < 80 {
					t.Errorf("%d went in 10 s, want the 100 of the rate; refused calls too: %v", n, refusedToo)
				}
			}
			t.Logf("refused calls too %v: part %v, in each 10 s: %v", refusedToo, f.Places()[0].Part, went)
			s.down.Store(false)
			_ = f.Close(context.Background())
		}
	})
}

// TestShareOfAnEarlierOutage checks that the rest of a quota's share is not used while no share is in use.
func TestShareOfAnEarlierOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1000}, Every: bucket.Day}
		s := &faulty{Store: NewMemory(nil)}
		_, regs := fleetOf(t, 1, s, quota, Options{Outage: 20 * time.Second, Without: Without{Share: 0.5}})
		c := limit.Charge{Registry: regs[0], Key: "", Cost: 1}
		went := 0
		one := func(n int) (ok int) {
			for range n {
				if yes, _, _ := goOne(context.Background(), clock.System.Now()+100*time.Millisecond, c); yes {
					ok++
				}
				time.Sleep(50 * time.Millisecond)
			}
			went += ok
			return ok
		}
		t.Log("heard:", one(200))
		s.down.Store(true)
		time.Sleep(25 * time.Second)
		share := one(1) // from the share
		t.Log("share:", share)
		s.down.Store(false)
		time.Sleep(10 * time.Second)
		t.Log("heard again:", one(100))
		s.down.Store(true) // an outage shorter than Options.Outage
		time.Sleep(2 * time.Second)
		alone := one(300)
		t.Log("cut off:", alone, "share left", leaseOf(regs[0].Get(clock.System.Now(), "")).own.standby.share)
		s.down.Store(false)
		time.Sleep(5 * time.Second)
		t.Log("heard again:", one(1200), "in all", went)
		if went-share > 1001 {
			t.Errorf("%d of a quota of 1000 went, %d of these by the share", went, share)
		}
	})
}

// TestSpentIsNotNegative checks that units granted before an outage and returned in it do not reduce the usage
// during the outage.
func TestSpentIsNotNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := limit.Limit{Name: "q", Shape: limit.Calendar, Unit: "tokens", Rate: bucket.Rate{Amount: 1_000_000}, Every: bucket.Day}
		s := &faulty{Store: NewMemory(nil)}
		var heard news
		_, regs := fleetOf(t, 1, s, quota, Options{Events: Events{Fallback: heard.hear}})
		var p limit.Charges
		for range 200 {
			goOne(context.Background(), clock.System.Now()+100*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 10})
			time.Sleep(50 * time.Millisecond)
		}
		p.Add(limit.Charge{Registry: regs[0], Key: "", Cost: 1000})
		now := clock.System.Now()
		for v := p.Take(now); p.Asks(v, time.Second); v = p.Take(clock.System.Now()) {
			if v, err := p.Fetch(context.Background(), now, now+time.Second, limit.Normal); err != nil || !v.OK {
				t.Fatal(v, err)
			}
		}
		s.down.Store(true)
		time.Sleep(5 * time.Second)
		p.Settle(clock.System.Now(), map[string]int64{"tokens": 100})
		s.down.Store(false)
		time.Sleep(5 * time.Second)
		heard.mu.Lock()
		defer heard.mu.Unlock()
		for _, e := range heard.all {
			if e.Spent < 0 {
				t.Errorf("spent %d while away", e.Spent)
			}
		}
	})
}

// TestStandbyComesBack checks that standby units return if their call continues to wait for another limit.
func TestStandbyComesBack(t *testing.T) {
	for off := range 10 {
		synctest.Test(t, func(t *testing.T) {
			quota := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day}
			rate := limit.Limit{Name: "r", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
			s := &faulty{Store: NewMemory(nil)}
			f, regs := groupOf(t, s, Options{}, quota, rate)
			cs := []limit.Charge{{Registry: regs[0], Key: "", Cost: 1}, {Registry: regs[1], Key: "", Cost: 1}}
			for range 600 {
				goOne(context.Background(), clock.System.Now()+100*time.Millisecond, cs...)
				time.Sleep(12 * time.Millisecond)
			}
			s.down.Store(true)
			time.Sleep(time.Duration(off) * 20 * time.Millisecond)
			q := leaseOf(regs[0].Get(clock.System.Now(), ""))
			begin := clock.System.Now()
			before := q.own.standby.left + q.held(begin)
			went := 0
			stop := clock.System.Now() + 3*time.Second
			done := make(chan bool)
			for range 4 {
				go func() {
					ok, _, _ := goOne(context.Background(), stop, limit.Charge{Registry: regs[0], Key: "", Cost: 20}, limit.Charge{Registry: regs[1], Key: "", Cost: 20})
					done <- ok
				}()
			}
			for range 4 {
				if <-done {
					went += 20
				}
			}
			now := clock.System.Now()
			after := q.own.standby.left + q.held(now)
			if lost := before - after - int64(went); lost > 20 {
				t.Errorf("store away after %d: of %d that stood by or were leased %d went and %d are left: %d are gone", off, before, went, after, lost)
			}
			s.down.Store(false)
			_ = f.Close(context.Background())
		})
	}
}
