package line

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// even returns a source that holds one call, and is empty at first.
func even(c Config) *source { return newSource(clock.System, c, 0) }

func TestAFloodDoesNotComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := even(Config{})
		var wg sync.WaitGroup
		s.flood(&wg, 20, Call{Flow: "a"}, 10*ms)
		s.flood(&wg, 3, Call{Flow: "b"}, 10*ms)
		wg.Wait()
		if got := fmt.Sprint(s.order[:8]); got != "[a b b a b a a a]" {
			t.Errorf("went in the order %v", got)
		}
		s.check(t)
	})
}

func TestFlowsShareByWeightAndCost(t *testing.T) {
	for _, c := range []struct {
		name   string
		wa, wb int
		ca, cb time.Duration
		want   float64 // calls of a for each call of b
	}{
		{"equals", 1, 1, 10 * ms, 10 * ms, 1},
		{"a weight of 3", 3, 1, 10 * ms, 10 * ms, 3},
		{"calls that cost 16 times as much", 1, 1, 160 * ms, 10 * ms, 1},
		{"both", 1, 2, 70 * ms, 30 * ms, 0.5},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := even(Config{PerFlow: 5000})
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 400 {
				wg.Go(func() { _, _ = s.call(ctx, Call{Flow: "a", Weight: c.wa, Until: never}, c.ca) })
				wg.Go(func() { _, _ = s.call(ctx, Call{Flow: "b", Weight: c.wb, Until: never}, c.cb) })
			}
			time.Sleep(3 * time.Second)
			s.mu.Lock()
			a, b := s.spent["a"], s.spent["b"]
			s.mu.Unlock()
			if diff := float64(a) - c.want*float64(b); diff > 2.1*float64(max(c.ca, c.cb)) || -diff > 2.1*c.want*float64(max(c.ca, c.cb)) {
				t.Errorf("%s: got %v and %v, want %v to 1", c.name, a, b, c.want)
			}
			cancel()
			wg.Wait()
			s.check(t)
		})
	}
}

// Each priority has its share, however many flows it has.
func TestPrioritiesShareByWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := even(Config{})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		names := []string{"high", "normal", "low"}
		for i, flows := range []int{1, 10, 100} {
			for j := range flows {
				for range 200 / flows {
					c := Call{Flow: fmt.Sprint(names[i], j), Priority: i, Until: never}
					wg.Go(func() { _, _ = s.callAs(ctx, names[i], c, 10*ms) })
				}
			}
		}
		time.Sleep(2100 * ms)
		s.mu.Lock()
		for i, want := range []time.Duration{1600 * ms, 400 * ms, 100 * ms} {
			if got := s.spent[names[i]]; got < want-30*ms || got > want+30*ms {
				t.Errorf("priority %s got %v of 2.1s, want %v", names[i], got, want)
			}
		}
		s.mu.Unlock()
		cancel()
		wg.Wait()
		s.check(t)
	})
}

func TestWhoLeavesHasCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := even(Config{})
		var wg sync.WaitGroup
		s.flood(&wg, 40, Call{Flow: "b"}, 10*ms)
		for range 30 {
			ctx, cancel := context.WithTimeout(t.Context(), 5*ms)
			wg.Go(func() {
				defer cancel()
				_, _ = s.call(ctx, Call{Flow: "a", Until: never}, 10*ms)
			})
		}
		time.Sleep(6 * ms)
		wg.Go(func() { _, _ = s.call(t.Context(), Call{Flow: "a", Until: never}, 10*ms) })
		wg.Wait()
		if s.order[0] != "a" && s.order[1] != "a" {
			t.Errorf("went in the order %v, want a second", s.order[:4])
		}
		s.check(t)
	})
}

func TestPlaceOfWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := even(Config{})
		var wg sync.WaitGroup
		s.flood(&wg, 10, Call{Flow: "a"}, 100*ms)
		s.flood(&wg, 1, Call{Flow: "b"}, 100*ms)
		now := clock.System.Now()
		p, err := s.call(t.Context(), Call{Flow: "a", Until: now + 250*ms}, 100*ms)
		if want := (Place{Place: 12, Waiting: 12, Due: now + 100*ms, Units: int64(1100 * ms)}); !errors.Is(err, ErrLate) || p != want {
			t.Errorf("got %+v, %v, want %+v", p, err, want)
		}
		time.Sleep(250 * ms)
		p, err = s.call(t.Context(), Call{Flow: "c", Until: clock.System.Now() + 10*ms}, 100*ms)
		if !errors.Is(err, ErrLate) || p.Place != 1 || p.Waiting != 10 || p.Units > 0 || p.Due-clock.System.Now() > 50*ms {
			t.Errorf("another flow: got %+v, %v, want to be first of 10", p, err)
		}
		wg.Wait()
		s.check(t)
	})
}

func TestTooManyAreRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := even(Config{Longest: 7, PerFlow: 5})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _, _ = s.call(ctx, Call{Flow: "a", Until: never}, time.Second) })
		}
		synctest.Wait()
		begin := clock.System.Now()
		if p, err := s.call(ctx, Call{Flow: "a", Until: never}, time.Second); !errors.Is(err, ErrFull) || p.Place != 6 || p.Waiting != 6 || p.Units != int64(5*time.Second) {
			t.Errorf("the sixth of a flow: got %+v, %v", p, err)
		}
		for range 2 {
			wg.Go(func() { _, _ = s.call(ctx, Call{Flow: "b", Until: never}, time.Second) })
		}
		synctest.Wait()
		if p, err := s.call(ctx, Call{Flow: "c", Until: never}, time.Second); !errors.Is(err, ErrFull) || p.Waiting != 8 {
			t.Errorf("the eighth: got %+v, %v", p, err)
		}
		if clock.System.Now() != begin {
			t.Error("not at once")
		}
		cancel()
		wg.Wait()
		s.check(t)
	})
}

func TestHopelessCallsAreRefusedAtOnce(t *testing.T) {
	for _, c := range []struct {
		flow string
		in   time.Duration
		ok   bool
	}{{"a", 1099 * ms, false}, {"a", 1100 * ms, true}, {"b", 99 * ms, false}} {
		synctest.Test(t, func(t *testing.T) {
			s := even(Config{})
			var wg sync.WaitGroup
			s.flood(&wg, 10, Call{Flow: "a"}, 100*ms)
			begin := clock.System.Now()
			_, err := s.call(t.Context(), Call{Flow: c.flow, Until: begin + c.in}, 100*ms)
			if took := clock.System.Now() - begin; c.ok != (err == nil) || !c.ok && took != 0 {
				t.Errorf("flow %s with %v left: %v after %v", c.flow, c.in, err, took)
			}
			wg.Wait()
			s.check(t)
		})
	}
}

// A long wait of the first call ends the waits of calls that cannot wait as long.
func TestAFirstFarAwaySendsOthersAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := even(Config{})
		begin := clock.System.Now()
		var wg sync.WaitGroup
		s.flood(&wg, 1, Call{Flow: "a"}, 500*ms)
		wg.Go(func() {
			p, err := s.call(t.Context(), Call{Flow: "a", Until: begin + 3*time.Second}, ms)
			if !errors.Is(err, ErrLate) || p.Place != 2 || p.Waiting != 2 || clock.System.Now() != begin+100*ms {
				t.Errorf("got %+v, %v after %v", p, err, clock.System.Now()-begin)
			}
		})
		time.Sleep(100 * ms)
		s.mu.Lock()
		s.paused = begin + 10*time.Second
		s.mu.Unlock()
		s.Kick()
		wg.Wait()
		s.check(t)
	})
}

// A new flow goes at the next turn. Ten calls that come together take at most twice as long as alone, whatever other
// flows have had before.
func TestWhoComesGoesAtTheNextTurn(t *testing.T) {
	for phase := range 100 * ms / (7 * ms) {
		for _, customers := range []string{"", "flood", "light"} { // the flow that has been there for long
			synctest.Test(t, func(t *testing.T) {
				s := even(Config{})
				var wg sync.WaitGroup
				if customers != "" {
					s.flood(&wg, 100, Call{Flow: customers}, 100*ms)
					wg.Wait()
				}
				s.flood(&wg, 50, Call{Flow: "flood"}, 100*ms)
				time.Sleep(1000*ms + phase*7*ms)
				begin := clock.System.Now()
				var took [10]time.Duration
				for i := range took {
					wg.Go(func() {
						_, _ = s.call(t.Context(), Call{Flow: "light", Until: never}, 100*ms)
						took[i] = clock.System.Now() - begin
					})
				}
				wg.Wait()
				if slices.Min(took[:]) > 100*ms || slices.Max(took[:]) > 1800*ms {
					t.Errorf("customers %q, after %v of a turn: waited %v, want a turn for the first and 18 for the last at most", customers, phase*7*ms, took)
				}
				s.check(t)
			})
		}
	}
}

// A late call of higher priority goes first, although another call has waited for long: no turn is reserved while it
// waits.
func TestAHigherPriorityOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := even(Config{})
		var wg sync.WaitGroup
		s.flood(&wg, 3, Call{Flow: "low", Priority: 2}, 100*ms)
		wg.Go(func() { _, _ = s.call(t.Context(), Call{Flow: "low", Priority: 2, Until: never}, 100*ms) })
		time.Sleep(199 * ms)
		s.flood(&wg, 1, Call{Flow: "high", Priority: 0}, 100*ms)
		wg.Wait()
		if s.order[1] != "high" {
			t.Errorf("went in the order %v", s.order)
		}
	})
}

// The usage of a flow before it was idle no longer counts: of two flows that come back, the first goes first.
func TestWhoWasAwayBeginsAnew(t *testing.T) {
	o, weights := order{}, (Config{}).WithDefaults().Weights
	came := uint64(0)
	enter := func(name string) {
		came++
		o.push(&waiter{call: &Call{Flow: name, Weight: 1, Came: came}, cost: ms})
	}
	goes := func() string {
		w := o.first()
		o.pop(w, &weights)
		return w.call.Flow
	}
	for range 30 {
		enter("flood")
	}
	for range 3 {
		goes()
	}
	for range 3 {
		enter("old")
		for range 4 {
			goes()
		}
	}
	enter("old")
	enter("new")
	if a, b := goes(), goes(); a == "new" || a != "old" && b != "old" {
		t.Errorf("%s went, then %s; want old before new", a, b)
	}
}

// Flows that always have waiting calls get the same, whatever their calls cost and whichever other flows come and go.
func TestPropertyBackloggedFlowsGetTheSame(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		o, weights := order{}, (Config{}).WithDefaults().Weights
		most, came := time.Duration(0), uint64(0)
		enter := func(name string, weight int) {
			cost := time.Duration(1 + r.IntN(1000))
			most = max(most, cost)
			came++
			o.push(&waiter{call: &Call{Flow: name, Weight: weight, Came: came}, cost: cost})
		}
		wa, wb := 1+r.IntN(5), 1+r.IntN(5)
		for range 200 {
			enter("a", wa)
			enter("b", wb)
		}
		got := map[string]float64{}
		for range 150 {
			if r.IntN(3) == 0 {
				enter(string(rune('c'+r.IntN(9))), 1)
			}
			w := o.first()
			o.pop(w, &weights)
			got[w.call.Flow] += float64(w.cost) / float64(w.call.Weight)
			if diff := got["a"] - got["b"]; max(diff, -diff) > 2*float64(most) {
				t.Fatalf("seed %d: weights %d and %d got %.0f and %.0f each for one, no call costs more than %v", seed, wa, wb, got["a"], got["b"], most)
			}
			if err := o.sound(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

// sound checks the sums of an order.
func (o *order) sound() error {
	n := 0
	for i := range o.priorities {
		l := &o.priorities[i]
		var sum item
		for j, f := range l.waiting {
			if f.slot != j || f.n == 0 {
				return fmt.Errorf("flow %s: slot %d of %d, %d calls", f.name, f.slot, j, f.n)
			}
			sum.n, sum.cost = sum.n+f.n, sum.cost+f.cost
		}
		if sum.n != l.n || sum.cost != l.cost {
			return fmt.Errorf("priority %d: %d calls of %d, in its flows %d of %d", i, l.n, l.cost, sum.n, sum.cost)
		}
		n += l.n
	}
	if n != o.n {
		return fmt.Errorf("%d wait, in priorities %d", o.n, n)
	}
	return nil
}

// Flows come and go all the time, and the memory for them does not grow.
func TestFlowsAreForgotten(t *testing.T) {
	o, weights := order{}, (Config{}).WithDefaults().Weights
	for i := range uint64(100_000) {
		o.push(&waiter{call: &Call{Flow: fmt.Sprint(i), Weight: 1, Came: i}, cost: 1})
		if w := o.first(); i%2 == 0 {
			o.pop(w, &weights)
		} else {
			o.remove(w)
		}
	}
	if n := len(o.priorities[0].flows); n > 200 {
		t.Errorf("%d flows are remembered", n)
	}
}

func TestConfig(t *testing.T) {
	if err := (Config{Weights: [Priorities]int{0, -1, 2000}, Longest: -1, PerFlow: -1}).Validate(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 4 {
		t.Errorf("got %v, want four mistakes", err)
	}
	if got := (Config{}).WithDefaults(); got != (Config{Weights: [Priorities]int{16, 4, 1}, Longest: 10_000, PerFlow: 1_000}) {
		t.Errorf("defaults are %+v", got)
	}
}
