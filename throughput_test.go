package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A tardy clock wakes sleepers up to 5 ms late.
type tardy struct {
	clock.Clock
	mu sync.Mutex
	r  *rand.Rand
}

func (c *tardy) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	late := time.Duration(c.r.Int64N(int64(5 * ms)))
	c.mu.Unlock()
	return c.Clock.Sleep(ctx, d+late)
}

// However many calls wait for a limit, and however late they wake, the limit is used completely.
func TestAllOfALimitIsUsedByWhoWaits(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	crowds := []int{64, 1000}
	if campaign.Long() {
		crowds = append(crowds, 30_000)
	}
	shapes := map[string]limit.Limit{
		"burst 1":   rate("all", 1000, sec, 1),
		"burst 100": rate("all", 1000, sec, 100),
		"rolling":   {Name: "all", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 900, Per: sec}},
		"window":    {Name: "all", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 2000, Per: sec}},
	}
	for name, l := range shapes {
		for _, crowd := range crowds {
			t.Run(fmt.Sprint(name, " ", crowd), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { useAll(t, l, crowd) })
			})
		}
	}
}

func useAll(t *testing.T, l limit.Limit, crowd int) {
	const long = 10 * sec
	p := steady(l)
	p.MaxWait = time.Hour
	u := open(t, p, weir.Options{Clock: &tardy{Clock: clock.System, r: chance(uint64(crowd))}})
	ctx, cancel := context.WithCancel(t.Context())
	var got tally
	var wg sync.WaitGroup
	for range crowd {
		wg.Go(func() { insists(ctx, u, weir.Call{}, func() { got.add("all", 1) }) })
	}
	pass(long)
	perSecond := l.PerSecond()
	if n := float64(got.all()["all"]); n < 0.999*perSecond*(long-5*ms).Seconds() || n > perSecond*(long.Seconds()+0.01)+float64(l.Most()) {
		t.Errorf("%v went in %v at %v", n, long, l)
	}
	cancel()
	wg.Wait()
}

// Calls that need two limits proceed among calls that need one of them, with and without fairness.
func TestCallsWithTwoLimitsGo(t *testing.T) {
	for _, burst := range []int64{1, 10} {
		synctest.Test(t, func(t *testing.T) {
			a, b := rate("a", 100, sec, burst), rate("b", 130, sec, burst)
			a.Operations, b.Operations = []string{"a", "both"}, []string{"b", "both"}
			p := steady(a, b)
			p.MaxWait = time.Minute
			u := open(t, p, weir.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			var got tally
			var mu sync.Mutex
			longest := time.Duration(0)
			var wg sync.WaitGroup
			for _, op := range []string{"a", "b", "both"} {
				for range 10 {
					wg.Go(func() {
						for ctx.Err() == nil {
							took, err := acquire(ctx, u, weir.Call{Operation: op})
							if err == nil {
								got.add(op, 1)
							}
							if mu.Lock(); op == "both" {
								longest = max(longest, took)
							}
							mu.Unlock()
						}
					})
				}
			}
			pass(20 * sec)
			n := got.all()
			cancel()
			wg.Wait()
			if n["both"] < 600 || n["a"]+n["both"] < 1700 || n["b"]+n["both"] < 1900 || longest > sec {
				t.Errorf("burst %d: in 20s at 100/s and 130/s %v went, and who needed both waited up to %v", burst, n, longest)
			}
		})
	}
}

// A call that does not wait takes no units for which another call waits, and its RetryAfter is when its turn would
// have come.
func TestWhoDoesNotWaitGoesBeforeNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("all", 10, sec, 10))
		p.MaxWait = time.Minute
		u := open(t, p, weir.Options{})
		for range 10 {
			try(u, weir.Call{})
		}
		large := weir.Call{Cost: map[string]int64{"requests": 8}}
		var wg sync.WaitGroup
		begin := clock.System.Now()
		for range 2 {
			wg.Go(func() { _, _ = acquire(t.Context(), u, large) })
		}
		pass(500 * ms)
		if _, d := try(u, weir.Call{}); d.Allowed || d.RetryAfter != 1200*ms {
			t.Errorf("got %+v after 500ms, want to be told of 1.7s", d)
		}
		wg.Wait()
		if took := since(begin); took != 1600*ms {
			t.Errorf("16 of 10/s took %v", took)
		}
	})
}

// A call whose turn cannot come in time is refused immediately, with the time of that turn.
func TestTooLateIsSaidAtOnce(t *testing.T) {
	window := limit.Limit{Name: "all", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 10, Per: sec}}
	fixed := limit.Limit{Name: "all", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 10}, Every: bucket.Minute}
	for _, c := range []struct {
		limit limit.Limit
		ahead int
		want  time.Duration
	}{
		{rate("all", 8, sec, 10), 7, sec},
		{rate("all", 8, sec, 10), 799, 100 * sec},
		{window, 3, sec}, {window, 9, sec}, {window, 10, 2 * sec}, {window, 35, 4 * sec},
		{fixed, 3, time.Minute}, {fixed, 9, time.Minute}, {fixed, 10, 2 * time.Minute}, {fixed, 35, 4 * time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := steady(c.limit)
			p.MaxWait = time.Hour
			u := open(t, p, weir.Options{})
			for range 10 {
				try(u, weir.Call{})
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range c.ahead {
				wg.Go(func() { _, _ = acquire(ctx, u, weir.Call{}) })
			}
			synctest.Wait()
			begin := clock.System.Now()
			short, stop := context.WithTimeout(t.Context(), c.want-1)
			_, err := acquire(short, u, weir.Call{})
			stop()
			if r := refusal(t, err); since(begin) != 0 || r.RetryAfter != c.want || r.Place != c.ahead+1 || r.Waiting != c.ahead+1 {
				t.Errorf("%v behind %d: got %v after %v, want %v at once", c.limit, c.ahead, r, since(begin), c.want)
			}
			if took, err := acquire(t.Context(), u, weir.Call{}); err != nil || took != c.want {
				t.Errorf("%v behind %d: went after %v, %v; want %v", c.limit, c.ahead, took, err, c.want)
			}
			cancel()
			wg.Wait()
		})
	}
}

// A call that has waited for another limit takes no units for which other calls have waited longer.
func TestWhoComesFromAnotherLineOvertakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := rate("a", 10, sec, 10), rate("b", 99, 10*sec, 1)
		a.Operations, b.Operations = []string{"a", "both"}, []string{"both"}
		p := steady(a, b)
		p.MaxWait = time.Minute
		u := open(t, p, weir.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() { insists(ctx, u, weir.Call{Operation: "both"}, func() {}) })
		}
		pass(5 * sec)
		for range 10 {
			try(u, weir.Call{Operation: "a"}) // no units remain
		}
		if took, err := acquire(t.Context(), u, weir.Call{Operation: "a", Cost: map[string]int64{"requests": 10}}); err != nil || took > 5500*ms { // 40 calls came before it
			t.Errorf("10 of 10/s took %v, %v", took, err)
		}
		cancel()
		wg.Wait()
	})
}

// A slow is a gate that refuses an operation after a while.
type slow string

func (g slow) Admit(_ context.Context, c weir.Call) (func(outcome.Outcome), error) {
	if c.Operation == string(g) {
		pass(500 * ms)
		return nil, errRejected
	}
	return func(outcome.Outcome) {}, nil
}

// Units that a refused call returns are available to waiting calls immediately.
func TestWhatARefusedCallGivesBackIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("all", 1, 10*sec, 1))
		p.Operations = []weir.Operation{{Name: "slow"}}
		p.MaxWait = time.Minute
		u := open(t, p, weir.Options{Gates: []weir.Gate{slow("slow")}})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = acquire(t.Context(), u, weir.Call{Operation: "slow"}) })
		synctest.Wait()
		if took, err := acquire(t.Context(), u, weir.Call{}); err != nil || took != 500*ms {
			t.Errorf("went after %v, %v", took, err)
		}
		wg.Wait()
	})
}

// A call that waits behind others in the queue of one limit is refused immediately if another limit refuses it
// anyway.
func TestALimitRefusesBehindTheLineOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quota := limit.Limit{Name: "quota", Scope: "user", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 1, Per: time.Hour}}
		p := steady(rate("all", 10, sec, 1), quota)
		p.MaxWait = 10 * sec
		u := open(t, p, weir.Options{})
		user := func(name string) weir.Call { return weir.Call{Keys: map[string]string{"user": name}} }
		if _, err := acquire(t.Context(), u, user("ann")); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() { _, _ = acquire(t.Context(), u, user(fmt.Sprint(i))) })
		}
		synctest.Wait()
		took, err := acquire(t.Context(), u, user("ann"))
		if r, ok := errors.AsType[*weir.Refusal](err); !ok || took > 0 || r.Limit != "quota" || r.RetryAfter < 59*time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		wg.Wait()
	})
}

// A far store has a latency.
type far struct {
	fleet.Store
	after time.Duration
}

func (f far) Take(ctx context.Context, a *fleet.Ask) error {
	time.Sleep(f.after)
	return f.Store.Take(ctx, a)
}

// A call that has all its units after a store's response proceeds, whichever calls have come meanwhile.
func TestWhoCameWhileTheStoreWasAskedGoesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 20
		own := limit.Limit{Name: "own", Local: true, Shape: limit.Rolling, Rate: bucket.Rate{Amount: most, Per: 2 * sec}}
		shared := limit.Limit{Name: "shared", Operations: []string{"both"}, Shape: limit.Rolling, Rate: bucket.Rate{Amount: most, Per: sec}}
		p := steady(own, shared)
		p.MaxWait = 10 * sec
		f := fleet.New(far{fleet.NewMemory(nil), 2 * ms}, fleet.Options{})
		f.Start()
		u := open(t, p, weir.Options{Fleet: f})
		t.Cleanup(func() { _ = f.Close(context.Background()) })
		pass(3 * sec)
		var wg sync.WaitGroup
		calls := func(op string, most time.Duration) {
			for range 20 {
				wg.Go(func() {
					if took, err := acquire(t.Context(), u, weir.Call{Operation: op}); err != nil || took > most {
						t.Errorf("%s: after %v: %v", op, took, err)
					}
				})
			}
		}
		calls("both", 10*ms) // two requests
		pass(ms)
		calls("own", 3*sec)
		wg.Wait()
	})
}
