package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// asking returns a policy whose calls ask again 2, 4 and 8 seconds later.
func asking(t *testing.T, per time.Duration) weir.Policy {
	again, ok := retry.Schedule("not-enough-tokens")
	if !ok {
		t.Fatal("there is no such schedule")
	}
	p := steady(rate("tokens", 1, per, 1))
	p.AskAgain = again
	return p
}

// A call that finds too few units waits 2, 4 and 8 seconds outside the queue, and asks again each time, also for a
// shared limit. It proceeds at the first time with enough units, and is refused at the last one.
func TestNotEnoughTokensAreAskedForAgain(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, c := range []struct {
			per, want time.Duration
			refused   bool
		}{{sec, 2 * sec, false}, {3 * sec, 6 * sec, false}, {10 * sec, 14 * sec, false}, {time.Minute, 14 * sec, true}} {
			synctest.Test(t, func(t *testing.T) {
				var o weir.Options
				if shared {
					f := fleet.New(fleet.NewMemory(nil), fleet.Options{})
					f.Start()
					defer func() { _ = f.Close(context.Background()) }()
					o.Fleet = f
				}
				var decided []weir.Decided
				o.Events.Decided = func(d weir.Decided) { decided = append(decided, d) }
				u := open(t, asking(t, c.per), o)
				if shared {
					pass(time.Minute + sec) // a fleet's new limit starts empty
				}
				first, err := u.Acquire(t.Context(), weir.Call{})
				if err != nil {
					t.Fatal(err)
				}
				first.Report(outcome.Outcome{Class: outcome.OK})
				begin := time.Now()
				_, err = weir.Do(t.Context(), u, weir.Call{}, func(context.Context) (int, error) { return 0, nil })
				if took := time.Since(begin); took < c.want || took > c.want+10*ms {
					t.Errorf("a unit each %v, shared %v: it took %v, want %v", c.per, shared, took, c.want)
				}
				var r *weir.Refusal
				if errors.As(err, &r) != c.refused || r != nil && (r.Reason != weir.RateLimited || r.RetryAfter <= 0 || r.Place != 0) {
					t.Errorf("a unit each %v, shared %v: %v", c.per, shared, err)
				}
				if n := len(decided); n != 2 || decided[1].Waited < c.want {
					t.Errorf("told of %d decisions, the last one after %v; want 2 and %v", n, decided[n-1].Waited, c.want)
				}
			})
		}
	}
}

// The breaker gets the outcome of a call that has asked again like any other.
func TestTheBreakerHearsOfWhoAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, asking(t, 3*sec), weir.Options{})
		for n := range 3 {
			p, err := u.Acquire(t.Context(), weir.Call{})
			if err != nil {
				t.Fatal(err)
			}
			p.Report(outcome.Outcome{Class: outcome.Failed})
			if b := u.Look(0).Breakers; len(b) != 1 || b[0].InARow != n+1 {
				t.Errorf("after %d failures the breaker knows of %+v", n+1, b)
			}
		}
	})
}

// A call that asks again does not wait beyond its deadline, after its caller has left, or while the upstream drains.
// Try does not wait.
func TestWhoAsksAgainWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, asking(t, time.Minute), weir.Options{})
		ask := func(ctx context.Context) (time.Duration, error) {
			begin := time.Now()
			_, err := u.Acquire(ctx, weir.Call{})
			return time.Since(begin), err
		}
		if _, err := ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 5*sec)
		defer cancel()
		if took, err := ask(short); took != 2*sec || !refusedFor(err, weir.RateLimited) {
			t.Errorf("with 5s left: %v after %v, want a refusal after 2s, as 4 more are too many", err, took)
		}
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(3*sec, leave)
		if took, err := ask(left); took != 3*sec || !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that leaves: %v after %v", err, took)
		}
		begin := time.Now()
		if d := u.Try(weir.Call{}, new(weir.Permit)); d.Allowed || time.Since(begin) != 0 {
			t.Errorf("Try: %+v after %v", d, time.Since(begin))
		}
		time.AfterFunc(sec, u.Drain)
		if took, err := ask(t.Context()); took != sec || !refusedFor(err, weir.ShuttingDown) {
			t.Errorf("while it drains: %v after %v", err, took)
		}
	})
}

func refusedFor(err error, why weir.Reason) bool {
	var r *weir.Refusal
	return errors.As(err, &r) && r.Reason == why
}

// A call that costs more than a limit can ever hold is refused immediately, with any schedule.
func TestAskAgainRefusesCostAboveTheBurstImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := fleet.New(fleet.NewMemory(nil), fleet.Options{})
		f.Start()
		defer func() { _ = f.Close(context.Background()) }()
		for _, o := range []weir.Options{{}, {Fleet: f}} {
			u := open(t, asking(t, sec), o)
			pass(time.Minute)
			for _, cost := range []int64{2, 1_000_000} {
				began := time.Now()
				_, err := weir.Do(t.Context(), u, weir.Call{Cost: map[string]int64{"requests": cost}}, func(context.Context) (int, error) { return 0, nil })
				if took := time.Since(began); !errors.Is(err, weir.ErrTooMuch) || took > 10*ms {
					t.Errorf("shared %v, %d units: after %v: %v", o.Fleet != nil, cost, took, err)
				}
			}
		}
	})
}
