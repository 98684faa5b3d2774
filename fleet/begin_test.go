package fleet

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// sharedEmpty makes a limit that replaces another one.
func sharedEmpty(t *testing.T, l limit.Limit, f *Fleet) *limit.Registry {
	t.Helper()
	r, err := limit.NewSharedEmpty(clock.System.Now(), l, f.Group("up"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A process that has spent its part during an outage does not get it again under another limit name.
func TestANewNameGivesNothingWhileTheStoreIsAway(t *testing.T) {
	for _, l := range []limit.Limit{rate(100, 100, sec), rollingLimit(1000, 10*sec)} {
		synctest.Test(t, func(t *testing.T) {
			s := &faulty{Store: NewMemory(nil)}
			fleets, regs := fleetOf(t, 2, s, l, Options{})
			for range 150 {
				drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
				time.Sleep(100 * time.Millisecond)
			}
			s.down.Store(true)
			time.Sleep(25 * time.Second)
			first := drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			l.Name = "m"
			r := sharedEmpty(t, l, fleets[0])
			if n := drainNow(limit.Charge{Registry: r, Key: "", Cost: 1}); n > 0 || first == 0 {
				t.Errorf("%v: %d, and %d more under another name", &l, first, n)
			}
			time.Sleep(20 * time.Second)
			if n := drainNow(limit.Charge{Registry: r, Key: "", Cost: 1}); n == 0 {
				t.Errorf("%v: nothing has come in 20 s", &l)
			}
			s.down.Store(false)
		})
	}
}

// The units that have accrued since a limit began are granted once. That holds for many processes, which start
// together or one after the other, and if responses are lost. Later units are granted as usual.
func TestAFleetBeginsWithWhatHasComeSince(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, l := range []limit.Limit{rate(100, 100, sec), rollingLimit(1000, 10*sec)} {
		for _, lost := range []int32{0, 1, 3, 20} {
			for _, apart := range []time.Duration{0, 70 * time.Millisecond} {
				synctest.Test(t, func(t *testing.T) {
					s := &faulty{Store: slow{NewMemory(nil), 2 * time.Millisecond}}
					fleets, regs := fleetOf(t, 4, s, l, Options{})
					time.Sleep(3 * time.Second)
					rec := &tally{}
					spend := func(r *limit.Registry, until time.Duration) {
						for clock.System.Now() < until {
							if ok, _, _ := goOne(context.Background(), clock.System.Now()+10*time.Millisecond, limit.Charge{Registry: r, Key: "", Cost: 1}); ok {
								rec.add(clock.System.Now(), 1)
							} else {
								time.Sleep(5 * time.Millisecond)
							}
						}
					}
					begin := clock.System.Now()
					var wg sync.WaitGroup
					for _, r := range regs {
						wg.Go(func() { spend(r, begin+20*time.Second) })
					}
					wg.Wait()
					s.dropped.Store(lost)
					old := len(rec.at)
					l.Name = "m"
					renamed := clock.System.Now()
					end := renamed + 40*time.Second
					for _, f := range fleets {
						wg.Go(func() { spend(sharedEmpty(t, l, f), end) })
						time.Sleep(apart)
					}
					wg.Wait()
					name := fmt.Sprintf("%v, %d answers lost, %v apart", &l, lost, apart)
					if worst, where := rec.over(l); worst > 0 {
						t.Errorf("%s: %d over: %s", name, worst, where)
					}
					most := 4000
					if l.Shape == limit.Rolling {
						most = 2900 // all of a window counts as used
					}
					if n := len(rec.at) - old; n < most*95/100 {
						t.Errorf("%s: %d went in 40 s under the new name, want %d", name, n, most)
					}
				})
			}
		}
	}
}

// A quota that replaces another one has no units in its window and all units in the next one.
func TestAQuotaBeginsWithTheNextWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		evening()
		day := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 10}, Every: bucket.Day}
		fleets, regs := fleetOf(t, 2, NewMemory(nil), day, Options{})
		spend := func(regs ...*limit.Registry) (went int) {
			for range 20 {
				for _, r := range regs {
					if ok, _, _ := goOne(context.Background(), clock.System.Now()+100*time.Millisecond, limit.Charge{Registry: r, Key: "", Cost: 1}); ok {
						went++
					}
					time.Sleep(100 * time.Millisecond)
				}
			}
			return went
		}
		time.Sleep(3 * time.Second)
		day.Name = "r"
		first, next := spend(regs...), []*limit.Registry{sharedEmpty(t, day, fleets[0]), sharedEmpty(t, day, fleets[1])}
		if then := spend(next...); first != 10 || then != 0 {
			t.Errorf("%d of 10 went, and %d under another name", first, then)
		}
		time.Sleep(10 * time.Minute)
		if n := spend(next...); n < 8 || n > 10 { // some units are in standby
			t.Errorf("%d of 10 went on the next day", n)
		}
	})
}
