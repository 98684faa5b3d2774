package weir_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A call whose turn comes at the last instant of its wait proceeds, whichever waiting call wakes first.
func TestWhoseTurnIsNowGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		window := limit.Limit{Name: "all", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: sec}}
		p := steady(window)
		p.MaxWait = sec
		u := open(t, p, weir.Options{})
		for range 100 {
			try(u, weir.Call{})
		}
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if took, err := acquire(t.Context(), u, weir.Call{}); err != nil || took != sec {
					t.Errorf("after %v: %v", took, err)
				}
			})
		}
		wg.Wait()
	})
}

// A call that is refused because the units belong to other calls gets a RetryAfter at which it can succeed.
func TestWhoYieldsToTheLastHearsWhenToComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := rate("a", 1, 5*sec, 1), rate("b", 3, sec, 10)
		a.Operations, b.Operations = []string{"a", "both"}, []string{"b", "both"}
		p := steady(a, b)
		p.MaxWait = time.Minute
		u := open(t, p, weir.Options{})
		try(u, weir.Call{Operation: "a"})
		got, err := u.Acquire(t.Context(), weir.Call{Operation: "b"})
		if err != nil {
			t.Fatal(err)
		}
		got.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"requests": 35}}) // a debt of 26
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = acquire(t.Context(), u, weir.Call{Operation: "b", Cost: map[string]int64{"requests": 10}})
		})
		synctest.Wait()
		wg.Go(func() { _, _ = acquire(t.Context(), u, weir.Call{Operation: "a"}) }) // the next call queues behind it, for a
		synctest.Wait()
		p.MaxWait = 10 * sec
		set(t, u, p)
		if _, err := acquire(t.Context(), u, weir.Call{Operation: "both"}); err == nil || refusal(t, err).RetryAfter < 333*ms {
			t.Errorf("got %v", err)
		}
		wg.Wait()
	})
}

// Calls with a local limit before a shared one send several requests to a slow store at the same time.
func TestASharedLimitBehindALocalOneIsAskedForTogether(t *testing.T) {
	for _, own := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			local := rate("local", 10_000, sec, 10_000)
			local.Local = true
			p := inTurn(rate("shared", 1000, sec, 100))
			if own {
				p = inTurn(local, rate("shared", 1000, sec, 100))
			}
			f := fleet.New(far{fleet.NewMemory(nil), 20 * ms}, fleet.Options{})
			f.Start()
			u := open(t, p, weir.Options{Fleet: f})
			t.Cleanup(func() { _ = f.Close(context.Background()) })
			pass(3 * sec)
			ctx, cancel := context.WithCancel(t.Context())
			var got tally
			var wg sync.WaitGroup
			for range 200 {
				wg.Go(func() { insists(ctx, u, of("a"), func() { got.add("", 1) }) })
			}
			pass(sec)
			n := got.all()[""]
			cancel()
			wg.Wait()
			if n < 400 {
				t.Errorf("with one of its own %v: %d of 1000/s went", own, n)
			}
		})
	}
}

// A call that moves from the queue of another limit to the queue of a shared one keeps its order of arrival, and
// sends no request to the store before its turn.
func TestWhoYieldsDoesNotAskTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, shared := rate("local", 1, 10*sec, 10), rate("shared", 10, sec, 1)
		local.Local, local.Operations = true, []string{"local", "both"}
		shared.Operations = []string{"shared", "both"}
		p := inTurn(local, shared)
		u := fleetOf(t, p, true)
		pass(3 * sec)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		calls := func(ctx context.Context, n int, c weir.Call) {
			for range n {
				wg.Go(func() { _, _ = acquire(ctx, u, c) })
			}
			synctest.Wait()
		}
		for range 5 {
			try(u, weir.Call{Operation: "local"})
		}
		calls(t.Context(), 20, weir.Call{Operation: "shared"})
		calls(ctx, 1, weir.Call{Operation: "local", Cost: map[string]int64{"requests": 8}}) // the next call waits for it
		begin := clock.System.Now()
		wg.Go(func() {
			if _, err := acquire(t.Context(), u, weir.Call{Operation: "both"}); err != nil || since(begin) < 1500*ms {
				t.Errorf("after %v: %v", since(begin), err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}

// An estimate above its limit's present burst is reduced, also while other calls go first.
func TestAGuessThatYieldsIsCutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := rate("requests", 1, sec, 2)
		requests.Operations = []string{"plain", "both"}
		most := tokens(10, sec, 100)
		most.Operations = []string{"both"}
		p := steady(requests, most)
		p.MaxWait = time.Minute
		u := open(t, p, weir.Options{})
		both := weir.Call{Operation: "both", Estimated: true, Cost: map[string]int64{"tokens": 100}}
		if _, err := acquire(t.Context(), u, both); err != nil {
			t.Fatal(err)
		}
		try(u, weir.Call{Operation: "plain"})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = acquire(t.Context(), u, weir.Call{Operation: "plain", Cost: map[string]int64{"requests": 2}})
		})
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() { _, _ = acquire(ctx, u, both) }) // the next call queues behind it, for tokens
		synctest.Wait()
		wg.Go(func() {
			if _, err := acquire(t.Context(), u, both); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		pass(100 * ms)
		cancel()
		fewer := most
		fewer.Rate.Burst = 10
		next := p
		next.Limits = []limit.Limit{requests, fewer}
		set(t, u, next)
		wg.Wait()
	})
}

// A debt is predicted once: a call behind the debt of a window proceeds at the predicted instant.
func TestWhatIsOwedToAWindowIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "all", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 10, Per: sec}}
		p := steady(l)
		p.MaxWait = 3 * sec
		u := open(t, p, weir.Options{})
		got, err := u.Acquire(t.Context(), weir.Call{})
		if err != nil {
			t.Fatal(err)
		}
		pass(100 * ms)
		got.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"requests": 35}})
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if took, err := acquire(t.Context(), u, weir.Call{}); err != nil || took > 2*sec {
					t.Errorf("after %v: %v", took, err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
	})
}

// Keys beyond the maximum share a limiter, and one queue for it.
func TestKeysThatShareALimiterStandInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := scoped(rate("each", 1, sec, 10), "user")
		l.MaxKeys = 1
		p := steady(l)
		p.MaxWait = time.Minute
		u := open(t, p, weir.Options{})
		for _, user := range []string{"a", "b", "c", "d", "e"} { // there is room for four keys in use
			for range 10 {
				try(u, of(user))
			}
		}
		var wg sync.WaitGroup
		c := of("f")
		c.Cost = map[string]int64{"requests": 5}
		wg.Go(func() {
			if took, err := acquire(t.Context(), u, c); err != nil || took != 5*sec {
				t.Errorf("the first: after %v, %v", took, err)
			}
		})
		synctest.Wait()
		if took, err := acquire(t.Context(), u, of("g")); err != nil || took != 6*sec {
			t.Errorf("the second: after %v, %v", took, err)
		}
		wg.Wait()
	})
}
