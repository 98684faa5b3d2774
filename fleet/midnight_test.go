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

// TestWhatAShareGaveYesterdayDoesNotComeBackToday checks that units of a quota's share return in the window
// from which they were taken, or not at all.
func TestWhatAShareGaveYesterdayDoesNotComeBackToday(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evening()
		quota := limit.Limit{Name: "q", Shape: limit.Calendar, Unit: "tokens", Rate: bucket.Rate{Amount: 1000}, Every: bucket.Day}
		s := &faulty{Store: NewMemory(nil)}
		s.down.Store(true)
		_, regs := fleetOf(t, 1, s, quota, Options{Without: Without{Share: 0.1}})
		take := func(n int64) (p *limit.Charges, ok bool) {
			p = new(limit.Charges)
			p.Add(limit.Charge{Registry: regs[0], Key: "", Cost: n})
			now := clock.System.Now()
			v := p.Take(now)
			for p.Asks(v, 100*time.Millisecond) {
				var err error
				if v, err = p.Fetch(context.Background(), now, now+100*time.Millisecond, limit.Normal); err != nil || !v.OK {
					return p, false
				}
				v = p.Take(clock.System.Now())
			}
			return p, v.OK
		}
		midnight := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour)
		time.Sleep(time.Until(midnight.Add(-10 * time.Second)))
		held, ok := take(60)
		if !ok {
			t.Fatal("nothing of the share")
		}
		time.Sleep(20 * time.Second)
		went := 0
		if _, ok := take(1); ok {
			went++
		}
		held.Settle(clock.System.Now(), map[string]int64{"tokens": 0})
		for range 300 {
			if _, ok := take(1); ok {
				went++
			}
		}
		if went != 100 {
			t.Errorf("%d of a share of 100 went in a day", went)
		}
		s.down.Store(false)
	})
}

// TestWhatStoodByIsUsedInItsWindow checks that a caller that wakes after the window's end does not use a
// standby unit of it.
func TestWhatStoodByIsUsedInItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day}
		rate := limit.Limit{Name: "r", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		s := &faulty{Store: NewMemory(nil)}
		f, regs := groupOf(t, s, Options{}, quota, rate)
		for range 100 {
			goOne(context.Background(), clock.System.Now()+100*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1}, limit.Charge{Registry: regs[1], Key: "", Cost: 1})
			time.Sleep(100 * time.Millisecond)
		}
		s.down.Store(true)
		time.Sleep(3 * time.Second)
		now := clock.System.Now()
		p := leaseOf(regs[0].Get(now, ""))
		q := f.Group("up").queue([]*lease{p})
		w := q.newWaiter()
		w.costs[0] = 1
		if !q.fromLeases(now, w) || isOwn(w.turns[0]) {
			t.Fatalf("nothing stood by: %+v", p.own.standby)
		}
		if until := p.own.standby.until.at; w.by.at > until {
			t.Errorf("it may be used until %v, %v after the window has ended for it", w.by.at, w.by.at-until)
		}
		s.down.Store(false)
		_ = f.Close(context.Background())
	})
}

// TestWhatIsPutBackWasNotWanted checks that a caller that repeatedly checks all of its limits does not increase
// the part of its process.
func TestWhatIsPutBackWasNotWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rate := limit.Limit{Name: "r", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		window := limit.Limit{Name: "w", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 1000, Per: 10 * time.Second}}
		quota := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100_000}, Every: bucket.Day}
		s := &faulty{Store: NewMemory(nil)}
		f, regs := groupOf(t, s, Options{}, rate, window, quota)
		for range 200 {
			goOne(context.Background(), clock.System.Now()+100*time.Millisecond, limit.Charge{Registry: regs[0], Key: "", Cost: 1}, limit.Charge{Registry: regs[1], Key: "", Cost: 1}, limit.Charge{Registry: regs[2], Key: "", Cost: 1})
			time.Sleep(100 * time.Millisecond)
		}
		s.down.Store(true)
		time.Sleep(15 * time.Second)
		g, now := f.Group("up"), clock.System.Now()
		at := func(i int) *lease { return leaseOf(regs[i].Get(now, "")) }
		q := g.queue([]*lease{at(0), at(1), at(2)})
		before := g.beating.wishes(now)
		for _, costs := range [][3]int64{{1, 1_000_000, 0}, {1, 1, 1_000_000}} {
			for range 100 {
				w := q.newWaiter()
				copy(w.costs[:], costs[:])
				if q.fromLeases(now, w) {
					t.Fatal("there is more than there can be")
				}
			}
		}
		q = g.queue([]*lease{at(2), at(0)})
		for range 100 {
			w := q.newWaiter()
			w.costs[0], w.costs[1] = 1, 1_000_000
			q.fromLeases(now, w)
		}
		if after := g.beating.wishes(now); after > before+0.1 {
			t.Errorf("it wished for %.1f s of its limits, and after calls of which nothing came for %.1f", before, after)
		}
		s.down.Store(false)
		_ = f.Close(context.Background())
	})
}

// TestWhoHearsOfAFallbackHoldsNobodyUp checks that events are emitted in order with no lock held.
func TestWhoHearsOfAFallbackHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		stop := make(chan struct{})
		s := &faulty{Store: NewMemory(nil)}
		l := limit.Limit{Name: "r", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		f, _ := groupOf(t, s, Options{Events: Events{Fallback: func(e FallbackEvent) {
			told = append(told, e.Away)
			<-stop
		}}}, l)
		time.Sleep(10 * time.Second)
		s.down.Store(true)
		time.Sleep(5 * time.Second)
		looked := false
		go func() { f.watch(clock.System.Now()); looked = true }()
		synctest.Wait()
		if len(told) != 1 || !looked {
			t.Errorf("%d events, and whoever looks meanwhile goes on: %v", len(told), looked)
		}
		s.down.Store(false)
		time.Sleep(5 * time.Second)
		close(stop)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(told) != 2 || !told[0] || told[1] {
			t.Errorf("told %v, want away and back", told)
		}
		_ = f.Close(context.Background())
	})
}
