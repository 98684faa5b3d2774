package fleet

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// goAs is goOne with a priority.
func goAs(ctx context.Context, until time.Duration, prio limit.Priority, r *limit.Registry, n int64) (bool, limit.Verdict, error) {
	var p limit.Charges
	p.Add(limit.Charge{Registry: r, Cost: n})
	now := clock.System.Now()
	v := p.Take(now)
	if !p.Asks(v, until-now) {
		return v.OK, v, nil
	}
	v, err := p.Fetch(ctx, now, until, prio)
	return v.OK, v, err
}

// Waiting calls are served by priority, and within a priority in the order of arrival.
func TestWaitersGoInOrderWithinTheirPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 2}}
		_, regs := fleetOf(t, 1, NewMemory(nil), l, Options{Lease: -1})
		for ok := true; ok; { // use up all units
			ok, _, _ = goAs(context.Background(), clock.System.Now(), limit.Normal, regs[0], 1)
		}
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		begin := clock.System.Now()
		for i, prio := range []limit.Priority{limit.Normal, limit.Low, limit.Normal, limit.High, limit.Low, limit.High, limit.Normal} {
			time.Sleep(time.Millisecond)
			wg.Go(func() {
				if ok, v, err := goAs(context.Background(), begin+10*time.Second, prio, regs[0], 1); !ok || err != nil {
					t.Errorf("caller %d: %+v %v", i, v, err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait()
		}
		wg.Wait()
		if want := []int{3, 5, 0, 2, 6, 1, 4}; !slices.Equal(order, want) {
			t.Errorf("went in the order %v, want %v", order, want)
		}
		if d := clock.System.Now() - begin; d > 900*time.Millisecond {
			t.Errorf("7 units at 10/s took %v", d)
		}
	})
}

func TestTheQueueIsBoundedAndWhoCannotWaitIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}
		_, regs := fleetOf(t, 1, NewMemory(nil), l, Options{Lease: -1, Queue: 5})
		begin := clock.System.Now()
		ctx, leave := context.WithCancel(context.Background())
		_, _, _ = goAs(ctx, begin, limit.Normal, regs[0], 1)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _, _, _ = goAs(ctx, begin+time.Minute, limit.Normal, regs[0], 1) })
			synctest.Wait()
		}
		before := clock.System.Now()
		if ok, v, err := goAs(ctx, begin+time.Minute, limit.Normal, regs[0], 1); ok || err != nil || v.Wait <= 0 {
			t.Errorf("a sixth caller was not refused: %+v %v", v, err)
		}
		leave()
		wg.Wait()
		if ok, v, _ := goAs(context.Background(), clock.System.Now()+100*time.Millisecond, limit.Normal, regs[0], 1); ok || v.Wait < 100*time.Millisecond {
			t.Errorf("who can wait 100ms for a unit a second away: %+v", v)
		}
		if d := clock.System.Now() - before; d > 10*time.Millisecond {
			t.Errorf("refusals took %v", d)
		}
		if ok, v, _ := goAs(context.Background(), clock.System.Now()+2*time.Second, limit.Normal, regs[0], 1); !ok {
			t.Errorf("the queue is stuck after its callers have left: %+v", v)
		}
	})
}

func TestACostAboveTheBurstIsRefusedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
		_, regs := fleetOf(t, 1, NewMemory(nil), l, Options{})
		ok, v, err := goAs(context.Background(), clock.System.Now()+time.Hour, limit.Normal, regs[0], 101)
		if ok || err != nil || v.Wait != bucket.Never {
			t.Errorf("got %v %+v %v, want never", ok, v, err)
		}
	})
}

// Calls arrive, wait, leave and return units at random. At the end, exactly those units count that were granted
// and not returned.
func TestNothingLeaksFromAQueue(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: 10 * time.Hour, Burst: 1000}}
			if seed%2 == 1 {
				l = limit.Limit{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 1000, Per: 1000 * time.Hour}}
			}
			s := slow{NewMemory(nil), time.Duration(r.IntN(8)) * time.Millisecond}
			lease := time.Duration(r.IntN(2)) * time.Second
			if lease == 0 {
				lease = -1
			}
			fleets, regs := fleetOf(t, 3, s, l, Options{Lease: lease, Guard: 20 * time.Millisecond})
			var mu sync.Mutex
			var kept int64
			var wg sync.WaitGroup
			for i := range 60 {
				own := rand.New(rand.NewPCG(seed, uint64(i)))
				wg.Go(func() {
					time.Sleep(time.Duration(own.IntN(200)) * time.Millisecond)
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(own.IntN(20))*time.Millisecond)
					defer cancel()
					var p limit.Charges
					n := 1 + own.Int64N(5)
					p.Add(limit.Charge{Registry: regs[own.IntN(3)], Cost: n})
					now := clock.System.Now()
					v := p.Take(now)
					if p.Asks(v, time.Second) {
						v, _ = p.Fetch(ctx, now, now+time.Second, limit.Priority(own.IntN(3)-1))
					}
					if !v.OK {
						return
					}
					back := own.Int64N(n + 1)
					p.Settle(clock.System.Now(), map[string]int64{limit.Requests: n - back})
					mu.Lock()
					defer mu.Unlock()
					kept += n - back
				})
			}
			wg.Wait()
			for _, f := range fleets {
				if err := f.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
			}
			sp := sourceOf(regs[0]).spec.Load()
			a := Ask{Group: "up", ID: 1, Lane: 1, Claims: []Claim{{Rule: &sp.rule}}}
			if err := s.Store.Take(context.Background(), &a); err != nil {
				t.Fatal(err)
			}
			// A bucket takes back fewer units than are available if earlier returns may be the same units. It
			// never takes back more, except for units that have drained since.
			if gone := sp.most() - a.Grants[0].Left; gone < kept-1 || l.Shape == limit.Rolling && gone > kept {
				t.Errorf("seed %d: the store counts %d gone, %d were kept (lease %v)", seed, gone, kept, lease)
			}
		})
	}
}

// Units granted before a pause are not used after it. The store would have stopped counting them long before.
func TestAGrantDoesNotOutliveAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		_, regs := fleetOf(t, 1, NewMemory(nil), l, Options{Lease: -1})
		time.Sleep(3 * time.Second)
		var p limit.Charges
		p.Add(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		now := clock.System.Now()
		if v := p.Take(now); !v.Ask {
			t.Fatalf("took %+v, want to ask", v)
		}
		if v, err := p.Fetch(t.Context(), now, now+time.Minute, limit.Normal); err != nil || !v.OK {
			t.Fatalf("fetched %+v, %v", v, err)
		}
		regs[0].Get(now, "").Pause(now, now+30*time.Second)
		if v := p.Take(clock.System.Now()); v.OK || !p.Asks(v, time.Minute) {
			t.Errorf("in the pause it says %+v, want to ask again", v)
		}
		v, err := p.Fetch(t.Context(), clock.System.Now(), now+time.Minute, limit.Normal)
		if at := clock.System.Now() - now; err != nil || !v.OK || at < 30*time.Second || at > 32*time.Second {
			t.Errorf("granted again after %v: %+v, %v", at, v, err)
		}
	})
}
