package fleet

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A call that cannot wait until all earlier calls are served is refused on arrival, with the time that those
// calls need. That includes calls that return, calls that do not wait, and calls whose deadlines have passed.
func TestAWaitCountsThoseAhead(t *testing.T) {
	for _, high := range []bool{false, true} {
		for _, patience := range []time.Duration{0, 3 * time.Second} {
			t.Run(fmt.Sprint(high, patience), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := New(slow{NewMemory(nil), time.Millisecond}, Options{Lease: -1})
					f.Start()
					l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 2}}
					r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
					if err != nil {
						t.Fatal(err)
					}
					ctx, cancel := context.WithCancel(context.Background())
					var wg sync.WaitGroup
					for range 12 { // ten of these wait
						wg.Go(func() {
							var p limit.Charges
							p.Add(limit.Charge{Registry: r, Cost: 1})
							now := clock.System.Now()
							_, _ = p.Fetch(ctx, now, now+time.Minute, limit.Normal)
						})
						time.Sleep(10 * time.Millisecond)
					}
					var p limit.Charges
					p.Add(limit.Charge{Registry: r, Cost: 1})
					prio, least, most := limit.Normal, 9*time.Second, 12*time.Second
					if high {
						prio, least, most = limit.High, 0, 2*time.Second
					}
					now := clock.System.Now()
					v, err := p.Fetch(context.Background(), now, now+patience, prio)
					took := clock.System.Now() - now
					switch {
					case err != nil:
						t.Error(err)
					case high && patience > 0:
						if !v.OK {
							t.Errorf("got %v after %v", v, took)
						}
					case v.OK || v.Wait < least || v.Wait > most || took > 10*time.Millisecond:
						t.Errorf("got %v after %v, want a no with a wait of %v to %v at once", v, took, least, most)
					}
					cancel()
					wg.Wait()
					if err := f.Close(context.Background()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// A call without room in the line is refused with the time of only those calls that precede it.
func TestOneWithoutRoomIsToldTheTimeOfThoseAhead(t *testing.T) {
	for prio, want := range map[limit.Priority]time.Duration{limit.Low: 10 * time.Second, limit.Normal: 5 * time.Second, limit.High: 0} {
		synctest.Test(t, func(t *testing.T) {
			f := New(slow{NewMemory(nil), time.Millisecond}, Options{Lease: -1, Queue: 10})
			f.Start()
			l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 2}}
			r, err := limit.NewShared(clock.System.Now(), l, f.Group("up"))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			waits := func(prio limit.Priority) (v limit.Verdict) {
				var p limit.Charges
				p.Add(limit.Charge{Registry: r, Cost: 1})
				now := clock.System.Now()
				v, _ = p.Fetch(ctx, now, now+time.Minute, prio)
				return v
			}
			for i := range 12 { // ten of these wait
				wg.Go(func() { waits([]limit.Priority{limit.Normal, limit.Low}[i%2]) })
				time.Sleep(10 * time.Millisecond)
			}
			if v := waits(prio); v.OK || v.Wait < want || v.Wait > want+2*time.Second {
				t.Errorf("%v: got %v, want a no with a wait of %v", prio, v, want)
			}
			cancel()
			wg.Wait()
			if err := f.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Units of a rolling limit that were used together return together. No call that can be served then is refused.
func TestWhatComesAtOnceIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(slow{NewMemory(nil), time.Millisecond}, Options{Lease: -1})
		f.Start()
		r, err := limit.NewShared(clock.System.Now(), limit.Limit{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 10, Per: 10 * time.Second}}, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		begin := clock.System.Now()
		var wg sync.WaitGroup
		for i := range 18 {
			wg.Go(func() {
				ok, v, err := goOne(context.Background(), begin+12*time.Second, limit.Charge{Registry: r, Cost: 1})
				if took := clock.System.Now() - begin; !ok || err != nil || took > 11*time.Second {
					t.Errorf("call %d after %v: %v, %v", i, took, v, err)
				}
			})
		}
		wg.Wait()
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
