package weir_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/outcome"
)

func TestABoundRefusesWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(2, rate("all", 10, sec, 10)), weir.Options{})
		a, _ := try(u, weir.Call{})
		_, _ = try(u, weir.Call{})
		before := left(t, u, "all", "")
		if _, d := try(u, weir.Call{}); d.Allowed || d.Reason != weir.ConcurrencyLimited || d.RetryAfter <= 0 || d.RetryAfter > 30*sec {
			t.Errorf("the third: %+v", d)
		}
		if n := left(t, u, "all", ""); n != before {
			t.Errorf("%d left of the limit, want %d: a refusal costs nothing", n, before)
		}
		if f := flights(t, u); f.InFlight != 2 || f.Bound != 2 || f.Refused != 1 || !f.Fixed {
			t.Errorf("it looks like %+v", f)
		}
		a.Report(ok)
		if _, d := try(u, weir.Call{}); !d.Allowed {
			t.Errorf("after an answer: %+v", d)
		}
	})
}

func TestARefusalForWantOfASlotSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(1), weir.Options{})
		_, _ = try(u, weir.Call{})
		start, a := clock.System.Now(), answers(nil)
		_, err := do(background, u, a)
		r := refusal(t, err)
		if since(start) != 2*sec || a.n != 0 { // twice the assumed latency
			t.Errorf("refused after %v and %d calls", since(start), a.n)
		}
		if r.Reason != weir.ConcurrencyLimited || r.InFlight != 1 || r.Bound != 1 || r.Place != 1 || r.Waiting != 1 || r.RetryAfter <= 0 {
			t.Errorf("%+v", r)
		}
		if !strings.HasPrefix(err.Error(), "api default: concurrency_limited with 1 of 1 in flight: retry after ") {
			t.Error(err)
		}
	})
}

func TestASlotIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(1, rate("all", 1, sec, 5)), weir.Options{})
		p, _ := try(u, weir.Call{})
		var order []int
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				_, err := weir.Do(background, u, weir.Call{}, func(context.Context) (int, error) {
					order = append(order, i)
					pass(100 * ms)
					return 0, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		if n := left(t, u, "all", ""); n != 4 {
			t.Errorf("%d left of the limit while three wait for a slot, want 4", n)
		}
		pass(200 * ms)
		p.Report(ok)
		wg.Wait()
		if fmt.Sprint(order) != "[0 1 2]" {
			t.Errorf("went in the order %v", order)
		}
		if n := left(t, u, "all", ""); n != 1 {
			t.Errorf("%d left of the limit, want 1", n)
		}
	})
}

// The wait for a slot ends with the longest wait and with the caller's deadline. That is a refusal, and does not
// count against the upstream.
func TestTheWaitForASlotIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		wait, deadline, want time.Duration
	}{
		"longest wait": {300 * ms, time.Hour, 300 * ms},
		"no wait":      {-1, time.Hour, 0},
		"deadline":     {10 * sec, 400 * ms, 400 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := bounded(1)
				p.MaxWait = c.wait
				u := open(t, p, weir.Options{})
				_, _ = try(u, weir.Call{})
				ctx, cancel := context.WithTimeout(background, c.deadline)
				defer cancel()
				start := clock.System.Now()
				_, err := u.Acquire(ctx, weir.Call{})
				if r := refusal(t, err); r.Reason != weir.ConcurrencyLimited || since(start) != c.want {
					t.Errorf("%v after %v, want %v", err, since(start), c.want)
				}
			})
		})
	}
}

func TestACallerWhoLeavesTheLineLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(1, rate("all", 1, time.Hour, 5)), weir.Options{})
		p, _ := try(u, weir.Call{})
		ctx, cancel := context.WithCancelCause(background)
		time.AfterFunc(100*ms, func() { cancel(errLeft) })
		start := clock.System.Now()
		if _, err := u.Acquire(ctx, weir.Call{}); !errors.Is(err, errLeft) || since(start) != 100*ms {
			t.Errorf("%v after %v", err, since(start))
		}
		p.Report(ok)
		if f := flights(t, u); f.InFlight != 0 || f.Waiting != 0 || left(t, u, "all", "") != 4 {
			t.Errorf("it looks like %+v, %d left", f, left(t, u, "all", ""))
		}
	})
}

// A call whose caller leaves, or that takes too long, keeps its slot, because the upstream still has the work.
func TestALeaverKeepsItsSlot(t *testing.T) {
	hangs := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	for name, c := range map[string]struct {
		timeout, patience time.Duration
	}{"leaves": {time.Hour, 100 * ms}, "times out": {100 * ms, time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := bounded(2)
				p.Timeouts.Attempt, p.Timeouts.Call, p.Retry.Attempts = c.timeout, 2*time.Hour, 1
				u := open(t, p, weir.Options{})
				ctx, cancel := context.WithTimeout(background, c.patience)
				defer cancel()
				if _, err := weir.Do(ctx, u, weir.Call{}, hangs); err == nil {
					t.Fatal("it was answered")
				}
				if f := flights(t, u); f.InFlight != 1 || f.Held != 1 {
					t.Fatalf("it looks like %+v, want the slot held", f)
				}
				if _, err := do(background, u, answers(nil)); err != nil {
					t.Fatal(err)
				}
				if f := flights(t, u); f.InFlight != 0 || f.Held != 0 {
					t.Errorf("after the answer to a later call: %+v", f)
				}
			})
		})
	}
}

func TestAHeldSlotIsFreeAfterHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := with(steady(), func(p *weir.Policy) { p.Concurrency.Auto = true })
		u := open(t, p, weir.Options{})
		var all []*weir.Permit
		for {
			p, d := try(u, weir.Call{})
			if !d.Allowed {
				break
			}
			all = append(all, p)
		}
		for _, p := range all {
			p.Report(outcome.Outcome{Class: outcome.Canceled})
		}
		pass(30*sec - 1)
		if f := flights(t, u); f.Held != len(all) {
			t.Errorf("before: %+v", f)
		}
		pass(1)
		if _, d := try(u, weir.Call{}); !d.Allowed || flights(t, u).InFlight != 1 {
			t.Errorf("after: %+v, %+v", d, flights(t, u))
		}
	})
}

func TestAnAttemptThatWasNotSentGivesItsSlotBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(1), weir.Options{})
		_, _ = do(background, u, answers(errUnsent))
		if f := flights(t, u); f.InFlight != 0 || f.Held != 0 {
			t.Errorf("it looks like %+v", f)
		}
	})
}

// A program's own report of such an end does not count against the upstream either.
func TestAReportIsAnAnswerWhateverItsCode(t *testing.T) {
	play := func(code string) (v weir.FlightView) {
		synctest.Test(t, func(t *testing.T) {
			u := open(t, weir.Policy{Concurrency: weir.Concurrency{Auto: true}}, weir.Options{})
			for range 100 {
				p, _ := try(u, weir.Call{})
				time.Sleep(30 * time.Millisecond)
				p.Report(outcome.Outcome{Class: outcome.Rejected, Code: code})
			}
			v = flights(t, u)
		})
		return v
	}
	if got, want := play("request body"), play("whatever"); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A breaker's probe is sent although every slot is taken. Waiting for one would keep the breaker from closing.
func TestAProbeTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bounded(1)
		p.Breaker = breaker.Config{Successes: 1}
		u := open(t, p, weir.Options{})
		_, _ = try(u, weir.Call{})
		u.Breaker("").ForceOpen(u.Now(), sec)
		pass(sec)
		if _, err := do(background, u, answers(nil)); err != nil {
			t.Errorf("the probe: %v", err)
		}
		if _, d := try(u, weir.Call{}); d.Reason != weir.ConcurrencyLimited {
			t.Errorf("after the probe: %+v", d)
		}
	})
}

func TestABoundIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bounded(1)
		p.MaxWait = -1
		u := open(t, p, weir.Options{})
		a := answers(errFailed)
		held := make(chan *weir.Permit, 1)
		_, err := weir.Do(background, u, weir.Call{Safe: true}, func(ctx context.Context) (int, error) {
			time.AfterFunc(ms, func() { // takes the slot during the wait
				hold, _ := try(u, weir.Call{})
				held <- hold
			})
			return a.call(ctx)
		})
		if r := refusal(t, gaveUp(t, err).Why); r.Reason != weir.ConcurrencyLimited || a.n != 1 || <-held == nil {
			t.Errorf("%v after %d calls", err, a.n)
		}
	})
}

func TestEachOperationHasItsOwnBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Operations = []weir.Operation{{Name: "get"}, {Name: "put", Concurrency: &weir.Concurrency{Limit: 1}}, {Name: "list", Concurrency: &weir.Concurrency{}}}
		p.Concurrency.Auto = true
		u := open(t, p, weir.Options{})
		for _, name := range []string{"put", "get", "list"} {
			if _, d := try(u, weir.Call{Operation: name}); !d.Allowed {
				t.Errorf("%s: %+v", name, d)
			}
		}
		if _, d := try(u, weir.Call{Operation: "put"}); d.Reason != weir.ConcurrencyLimited {
			t.Errorf("a second put: %+v", d)
		}
		var got []string
		for _, f := range u.Look(0).Flights {
			got = append(got, fmt.Sprintf("%s:%d", f.Operation, f.InFlight))
		}
		if want := "[default:0 get:1 put:1]"; fmt.Sprint(got) != want {
			t.Errorf("bounds %v, want %v", got, want)
		}
	})
}

func TestOneNumberIsForAllOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := bounded(2)
		p.Operations = []weir.Operation{{Name: "get"}, {Name: "put"}}
		u := open(t, p, weir.Options{})
		_, _ = try(u, weir.Call{Operation: "get"})
		_, _ = try(u, weir.Call{Operation: "put"})
		if _, d := try(u, weir.Call{}); d.Reason != weir.ConcurrencyLimited {
			t.Errorf("the third: %+v", d)
		}
	})
}

func TestSetChangesABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(1), weir.Options{})
		first, _ := try(u, weir.Call{})
		var wg sync.WaitGroup
		wg.Go(func() {
			start := clock.System.Now()
			if _, err := u.Acquire(background, weir.Call{}); err != nil || since(start) != 500*ms {
				t.Errorf("one who waits: %v after %v", err, since(start))
			}
		})
		pass(500 * ms)
		if err := u.Set(bounded(2)); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if _, d := try(u, weir.Call{}); d.Reason != weir.ConcurrencyLimited {
			t.Errorf("the third of two: %+v", d)
		}
		if err := u.Set(steady()); err != nil {
			t.Fatal(err)
		}
		if _, d := try(u, weir.Call{}); !d.Allowed {
			t.Errorf("without a bound: %+v", d)
		}
		first.Report(ok) // to the removed bound
		if err := u.Set(with(steady(), func(p *weir.Policy) { p.Concurrency.Min = 3 })); err == nil {
			t.Error("min alone is no bound")
		}
	})
}

// However calls end, at most the bound are in flight, every call ends, and no slot is lost.
func TestPropertyNeverMoreThanTheBound(t *testing.T) {
	for seed := range uint64(raced.Of(300, 30)) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			n := 1 + r.IntN(6)
			p := bounded(n)
			if r.IntN(2) == 0 {
				p = bounded(n, rate("all", 40, sec, 1+r.Int64N(10)))
			}
			if r.IntN(3) == 0 {
				p.Fair.By = "user"
			}
			p.Breaker = breaker.Config{Failures: 4, Open: 200 * ms}
			p.Timeouts.Attempt = time.Duration(50+r.IntN(300)) * ms
			u := open(t, p, weir.Options{})
			var under atomic.Int64
			var wg sync.WaitGroup
			for i := range 60 {
				start, takes, patience := time.Duration(r.IntN(1500))*ms, time.Duration(r.IntN(400))*ms, time.Duration(r.IntN(3000))*ms
				fails, polite := r.IntN(5) == 0, r.IntN(2) == 0
				wg.Go(func() {
					pass(start)
					ctx, cancel := context.WithTimeout(background, patience)
					defer cancel()
					begin := clock.System.Now()
					_, _ = weir.Do(ctx, u, weir.Call{Safe: true, Keys: map[string]string{"user": fmt.Sprint(i % 3)}}, func(ctx context.Context) (int, error) {
						if k := under.Add(1); int(k) > n && u.Look(0).Breakers[0].Phase == breaker.Closed {
							t.Errorf("seed %d: %d under way, the bound is %d", seed, k, n)
						}
						defer under.Add(-1)
						if err := clock.System.Sleep(ctx, takes); err != nil && polite {
							return 0, err
						}
						if fails {
							return 0, errFailed
						}
						return 0, nil
					})
					if took := since(begin); took > patience+400*ms {
						t.Errorf("seed %d: it took %v, the caller had %v", seed, took, patience)
					}
				})
			}
			wg.Wait()
			if f := flights(t, u); f.InFlight != f.Held || f.Waiting != 0 {
				t.Errorf("seed %d: in the end %+v", seed, f)
			}
			pass(30 * sec)
			for range n {
				if _, d := try(u, weir.Call{Keys: map[string]string{"user": "x"}}); d.Reason == weir.ConcurrencyLimited {
					t.Errorf("seed %d: slots are lost: %+v", seed, flights(t, u))
				}
				pass(sec)
			}
		})
		if t.Failed() {
			return
		}
	}
}
