package weir_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func TestAnswerComesBack(t *testing.T) {
	u := open(t, weir.Policy{}, weir.Options{})
	if n, err := do(background, u, answers(nil)); n != 1 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

func TestRetriesUntilItWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		start := clock.System.Now()
		n, err := do(background, u, answers(errFailed, errThrottled, nil))
		if n != 3 || err != nil || since(start) != 300*ms {
			t.Errorf("got %d, %v after %v; want 3, nil after 100ms+200ms", n, err, since(start))
		}
	})
}

func TestOpenBreakerCostsNoTokens(t *testing.T) {
	p := steady(rate("all", 1, time.Hour, 1))
	p.Breaker = breaker.Config{}
	u := open(t, p, weir.Options{})
	u.Breaker("").ForceOpen(u.Now(), time.Hour)
	a := answers(nil)
	_, err := do(background, u, a)
	r := refusal(t, err)
	if r.Reason != weir.CircuitOpen || r.RetryAfter <= 59*time.Minute || r.Limit != "" || a.n != 0 {
		t.Errorf("got %+v after %d calls, want circuit_open for an hour after none", r, a.n)
	}
	if n := left(t, u, "all", ""); n != 1 {
		t.Errorf("%d tokens left, want 1", n)
	}
}

func TestRefusedByOneLimitCostsNothingOfTheOthers(t *testing.T) {
	u := open(t, steady(rate("a", 1, time.Hour, 5), rate("b", 1, time.Hour, 1), rate("c", 1, time.Hour, 5)), weir.Options{})
	if _, err := do(background, u, answers(nil)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, err := do(background, u, answers(nil))
		if r := refusal(t, err); r.Limit != "b" {
			t.Errorf("refused by %s, want b", r.Limit)
		}
	}
	if a, c := left(t, u, "a", ""), left(t, u, "c", ""); a != 4 || c != 4 {
		t.Errorf("left: %d of a, %d of c; want 4, 4", a, c)
	}
}

func TestRefusalByALimitFreesTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("all", 1, time.Minute, 1))
		p.Breaker, p.MaxWait = breaker.Config{Successes: 1}, -1
		u := open(t, p, weir.Options{})
		u.Breaker("").ForceOpen(u.Now(), sec)
		pass(sec)
		tokens, _ := try(u, weir.Call{}) // the probe, with the only token
		tokens.Report(outcome.Outcome{Class: outcome.Canceled})
		for range 2 {
			_, err := do(background, u, answers(nil))
			if r := refusal(t, err); r.Reason != weir.RateLimited {
				t.Errorf("refused by %v, want the limit each time", r.Reason)
			}
		}
		pass(time.Minute)
		if _, err := do(background, u, answers(nil)); err != nil {
			t.Errorf("no probe although the place is free: %v", err)
		}
		if v := u.Look(0).Breakers[0]; v.Phase != breaker.Closed {
			t.Errorf("breaker is %v after a good probe", v.Phase)
		}
	})
}

func TestCallsWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("all", 10, sec, 1)), weir.Options{})
		a, start := answers(nil), clock.System.Now()
		for range 5 {
			if _, err := do(background, u, a); err != nil {
				t.Error(err)
			}
		}
		if since(start) != 400*ms {
			t.Errorf("5 calls at 10/s took %v, want 400ms", since(start))
		}
	})
}

func TestRefusedAtOnceIfTheTurnWouldBeTooLate(t *testing.T) {
	minute := rate("all", 1, time.Minute, 1)
	for _, c := range []struct {
		name     string
		change   func(*weir.Policy)
		deadline time.Duration
		refused  bool
	}{
		{"default of 10s", func(*weir.Policy) {}, 0, true},
		{"longest wait", func(p *weir.Policy) { p.MaxWait = 59 * sec }, 0, true},
		{"long enough", func(p *weir.Policy) { p.MaxWait = 61 * sec; p.Timeouts.Call = -1 }, 0, false},
		{"no waiting", func(p *weir.Policy) { p.MaxWait = -1 }, 0, true},
		{"deadline of the caller", func(p *weir.Policy) { p.MaxWait = time.Hour; p.Timeouts.Call = -1 }, 59 * sec, true},
		{"deadline long enough", func(p *weir.Policy) { p.MaxWait = time.Hour; p.Timeouts.Call = -1 }, 61 * sec, false},
		{"timeout of the call", func(p *weir.Policy) { p.MaxWait = time.Hour; p.Timeouts.Call = 59 * sec }, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := steady(minute)
				c.change(&p)
				u := open(t, p, weir.Options{})
				if _, err := do(background, u, answers(nil)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := background, context.CancelFunc(func() {})
				if c.deadline > 0 {
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
				}
				defer cancel()
				start := clock.System.Now()
				_, err := do(ctx, u, answers(nil))
				if (err != nil) != c.refused || c.refused && since(start) != 0 {
					t.Errorf("got %v after %v, want refused at once: %v", err, since(start), c.refused)
				}
			})
		})
	}
}

// A pause that begins while a call waits can make its turn too late. The call is then refused immediately.
func TestWaitThatGrowsTooLongEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("all", 1, sec, 1))
		p.MaxWait = 5 * sec
		u := open(t, p, weir.Options{})
		other, _ := try(u, weir.Call{})
		var wg sync.WaitGroup
		wg.Go(func() {
			start := clock.System.Now()
			_, err := do(background, u, answers(nil))
			if r := refusal(t, err); r.Reason != weir.Paused || since(start).Round(ms) != 500*ms {
				t.Errorf("got %v after %v, want paused when the pause begins", r, since(start))
			}
		})
		pass(500 * ms)
		other.Report(hinted(30 * sec).O)
		wg.Wait()
	})
}

func TestCallsEarnRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Budget = retry.BudgetConfig{Share: 0.5, Floor: 0.1}
		u := open(t, p, weir.Options{})
		for range 20 {
			_, _ = do(background, u, answers(nil))
		}
		if n := u.Look(0).RetriesLeft; n != 11 {
			t.Errorf("%d retries left after 20 calls, want 10 and the floor's 1", n)
		}
	})
}

func TestCallsThatAreRefusedEarnNoRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Budget = retry.BudgetConfig{Share: 0.5, Floor: 0.1}
		u := open(t, p, weir.Options{Gates: []weir.Gate{gate(func() error { return errLeft })}})
		for range 20 {
			if _, err := do(background, u, answers(nil)); err == nil {
				t.Fatal("the gate let it go")
			}
		}
		if n := u.Look(0).RetriesLeft; n != 1 {
			t.Errorf("%d retries left after 20 calls that a gate refused, want the floor's 1", n)
		}
	})
}

func TestRefusalSaysEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := scoped(rate("put", 1, time.Minute, 2), "tenant")
		l.Operations = []string{"put"}
		u := open(t, steady(l), weir.Options{})
		call := weir.Call{Operation: "put", Keys: map[string]string{"tenant": "acme"}, Safe: true}
		var err error
		for range 3 {
			_, err = weir.Do(background, u, call, answers(nil).call)
		}
		r := refusal(t, err)
		r.RetryAfter = r.RetryAfter.Round(sec)
		if r.Upstream != "api" || r.Operation != "put" || r.Reason != weir.RateLimited || r.Limit != "put" || r.Key != "acme" ||
			r.Rule.Name != "put" || r.Level.Left != 0 || r.Level.Full != 2 || r.RetryAfter != time.Minute {
			t.Errorf("got %+v", r)
		}
		want := `api put: rate_limited by limit put (1/min burst 2) for tenant "acme": retry after 1m0s`
		if r.Error() != want {
			t.Errorf("got  %s\nwant %s", r.Error(), want)
		}
	})
}

func TestCostAboveTheBurstIsToldApart(t *testing.T) {
	l := rate("tokens", 1, sec, 10)
	l.Unit = "tokens"
	u := open(t, steady(l), weir.Options{})
	_, err := weir.Do(background, u, weir.Call{Cost: map[string]int64{"tokens": 11}}, answers(nil).call)
	if !errors.Is(err, weir.ErrTooMuch) || !strings.Contains(err.Error(), "costs 11 tokens, and limit tokens holds at most 10") {
		t.Errorf("got %v, want ErrTooMuch with the figures", err)
	}
	if _, d := try(u, weir.Call{Cost: map[string]int64{"tokens": 11}}); d.Allowed || d.RetryAfter != weir.Never {
		t.Errorf("Try: got %+v, want never", d)
	}
}

func TestGivingUpTellsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		a := answers(errors.New("first"), errFailed)
		_, err := weir.Do(background, u, weir.Call{Operation: "put", Safe: true}, a.call)
		g := gaveUp(t, err)
		if g.Upstream != "api" || g.Operation != weir.DefaultOperation || g.Attempts != 3 || a.n != 3 || g.Elapsed != 300*ms ||
			g.Why != retry.ErrAttempts || g.Last != errFailed || g.Outcome.Code != "broken" {
			t.Errorf("got %+v after %d calls", g, a.n)
		}
		if !errors.Is(err, retry.ErrAttempts) || !errors.Is(err, errFailed) {
			t.Errorf("%v hides why or the last error", err)
		}
		if b, ok := errors.AsType[*bad](err); !ok || b != errFailed {
			t.Errorf("the type of the last error is lost in %v", err)
		}
	})
}

func TestWhyThereIsNoOtherAttempt(t *testing.T) {
	advice := &bad{O: outcome.Outcome{Class: outcome.Failed, Hint: outcome.Hint{Advice: outcome.NotAgain}}}
	quota := &bad{O: outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Quota: true}}}
	for _, c := range []struct {
		name  string
		call  weir.Call
		err   error
		p     func(*weir.Policy)
		why   error // nil means that the error is returned unchanged
		calls int
	}{
		{"not retryable", weir.Call{Safe: true}, errRejected, nil, nil, 1},
		{"unsafe", weir.Call{}, errFailed, nil, retry.ErrUnsafe, 1},
		{"unsafe and unknown", weir.Call{}, errPlain, nil, retry.ErrUnsafe, 1},
		{"unsafe but undone", weir.Call{}, errUnsent, nil, retry.ErrAttempts, 3},
		{"unsafe but throttled", weir.Call{}, errThrottled, nil, retry.ErrAttempts, 3},
		{"attempts", weir.Call{Safe: true}, errPlain, nil, retry.ErrAttempts, 3},
		{"one attempt", weir.Call{Safe: true}, errFailed, func(p *weir.Policy) { p.Retry.Attempts = 1 }, retry.ErrAttempts, 1},
		{"advice", weir.Call{Safe: true}, advice, nil, retry.ErrAdvice, 1},
		{"quota", weir.Call{Safe: true}, quota, nil, retry.ErrQuota, 1},
		{"long hint", weir.Call{Safe: true}, hinted(time.Hour), nil, retry.ErrHint, 1},
		{"deadline", weir.Call{Safe: true}, errFailed, func(p *weir.Policy) { p.Timeouts.Call = 150 * ms }, retry.ErrDeadline, 2},
		{"budget", weir.Call{Safe: true}, errFailed, func(p *weir.Policy) {
			p.Budget = retry.BudgetConfig{Floor: 0.1}
		}, retry.ErrBudget, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := steady()
				if c.p != nil {
					c.p(&p)
				}
				a := answers(c.err)
				_, err := weir.Do(background, open(t, p, weir.Options{}), c.call, a.call)
				if a.n != c.calls || c.why == nil && err != c.err || c.why != nil && (gaveUp(t, err).Why != c.why || !errors.Is(err, c.err)) {
					t.Errorf("got %v after %d calls, want %v after %d", err, a.n, c.why, c.calls)
				}
			})
		})
	}
}

// Even if an earlier attempt was retryable, the final error is a GaveUpError.
func TestRejectionAfterARetryIsGivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := do(background, open(t, steady(), weir.Options{}), answers(errFailed, errRejected))
		if g := gaveUp(t, err); g.Attempts != 2 || g.Why != retry.ErrNotRetryable || g.Last != errRejected {
			t.Errorf("got %+v", g)
		}
	})
}

func TestOperationHasRetriesOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Operations = []weir.Operation{{Name: "stubborn", Retry: &retry.Config{Attempts: 7, Jitter: retry.NoJitter}}}
		u := open(t, p, weir.Options{})
		for name, want := range map[string]int{"stubborn": 7, "other": 3, "": 3} {
			a := answers(errFailed)
			_, _ = weir.Do(background, u, weir.Call{Operation: name, Safe: true}, a.call)
			if a.n != want {
				t.Errorf("operation %q: %d attempts, want %d", name, a.n, want)
			}
		}
	})
}

func TestHintPausesItsLimitAndKeyOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(scoped(rate("tenant", 1000, sec, 0), "tenant"), rate("put", 1000, sec, 0))
		p.Limits[1].Operations = []string{"put"}
		p.Retry.Attempts = 1
		u := open(t, p, weir.Options{})
		call := func(op, tenant string) weir.Call {
			return weir.Call{Operation: op, Keys: map[string]string{"tenant": tenant}, Safe: true}
		}
		if _, err := weir.Do(background, u, call("get", "a"), answers(hinted(5*sec)).call); err == nil {
			t.Fatal("no error")
		}
		for _, c := range []struct {
			op, tenant string
			want       time.Duration
		}{{"get", "b", 0}, {"put", "b", 0}, {"get", "a", 5 * sec}, {"put", "a", 0}} {
			start := clock.System.Now()
			if _, err := weir.Do(background, u, call(c.op, c.tenant), answers(nil).call); err != nil || since(start) != c.want {
				t.Errorf("%s of %s waited %v, want %v; error %v", c.op, c.tenant, since(start), c.want, err)
			}
		}
	})
}

func TestPauseIsARefusalOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limits := range [][]limit.Limit{nil, {rate("all", 1000, sec, 0)}} {
			p := steady(limits...)
			p.MaxWait = -1
			u := open(t, p, weir.Options{})
			_, _ = weir.Do(background, u, weir.Call{}, answers(&bad{O: outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: 5 * sec}}}).call)
			_, err := do(background, u, answers(nil))
			if r := refusal(t, err); r.Reason != weir.Paused || r.RetryAfter != 5*sec {
				t.Errorf("%d limits: got %v", len(limits), r)
			}
		}
	})
}

func TestPauseIsBounded(t *testing.T) {
	for _, c := range []struct {
		hint  outcome.Hint
		most  time.Duration
		pause time.Duration
	}{
		{outcome.Hint{Said: true, After: time.Hour}, 0, 15 * time.Minute},
		{outcome.Hint{Said: true, After: time.Hour}, time.Minute, time.Minute},
		{outcome.Hint{Said: true, After: time.Hour, Quota: true}, time.Minute, time.Hour},
		{outcome.Hint{Said: true, After: 10000 * time.Hour, Quota: true}, time.Minute, 31 * 24 * time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := steady(rate("all", 1000, sec, 0))
			p.MaxPause = c.most
			u := open(t, p, weir.Options{})
			_, _ = do(background, u, answers(&bad{O: outcome.Outcome{Class: outcome.Throttled, Hint: c.hint}}))
			if got := u.Look(0).Limits[0].Level.Paused; got != c.pause {
				t.Errorf("hint %v: paused for %v, want %v", c.hint, got, c.pause)
			}
		})
	}
}

func TestNestedCallsDoNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		inner := answers(errFailed)
		_, err := weir.Do(background, u, weir.Call{Safe: true}, func(ctx context.Context) (int, error) {
			n, err := do(context.WithValue(ctx, errLeft, 1), u, inner)
			if err != errFailed {
				t.Errorf("the inner call returned %v, want the error as it is", err)
			}
			return n, err
		})
		if g := gaveUp(t, err); inner.n != 3 || g.Attempts != 3 {
			t.Errorf("%d calls upstream, %d attempts; want 3, 3", inner.n, g.Attempts)
		}
	})
}

func TestOnceIsOneAttempt(t *testing.T) {
	u := open(t, steady(), weir.Options{})
	attempts := 0
	_, err := weir.Do(weir.Once(background), u, weir.Call{Safe: true}, func(context.Context) (int, error) {
		attempts++
		return 0, errLeft
	})
	if err != errLeft || attempts != 1 {
		t.Errorf("%d attempts, %v", attempts, err)
	}
}

// weir's refusal within an attempt does not count against the outer upstream.
func TestInnerRefusalIsNotHeldAgainstTheOuterUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Breaker = breaker.Config{Failures: 1}
		outer := open(t, p, weir.Options{})
		inner := open(t, steady(rate("all", 1, time.Hour, 1)), weir.Options{})
		for range 2 {
			_, _ = weir.Do(background, outer, weir.Call{}, func(ctx context.Context) (int, error) { return do(ctx, inner, answers(nil)) })
		}
		if v := outer.Look(0).Breakers[0]; v.Phase != breaker.Closed {
			t.Errorf("the outer breaker is %v because of %v", v.Phase, v.Why)
		}
	})
}

func TestGatesHearOfEachAttemptOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &ledger{}
		u := open(t, steady(), weir.Options{Gates: []weir.Gate{book, book}})
		_, _ = do(background, u, answers(errFailed, errThrottled, nil))
		if err := book.Check(); err != nil || book.Admitted != 6 {
			t.Errorf("%v; %d permits, want 6", err, book.Admitted)
		}
	})
}

func TestPanicReportsThePermit(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic(errLeft) }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, book := steady(rate("all", 1, time.Hour, 10)), &ledger{}
				p.Breaker = breaker.Config{Successes: 1}
				u := open(t, p, weir.Options{Gates: []weir.Gate{book}})
				u.Breaker("").ForceOpen(u.Now(), sec)
				pass(sec)
				var wg sync.WaitGroup
				wg.Go(func() {
					defer func() { _ = recover() }()
					_, _ = weir.Do(background, u, weir.Call{}, func(context.Context) (int, error) { end(); return 0, nil })
				})
				wg.Wait()
				if err := book.Check(); err != nil || book.Admitted != 1 || book.Last != outcome.Canceled {
					t.Errorf("%v; last reported as %v", err, book.Last)
				}
				if v := u.Look(0).Breakers[0]; v.Phase != breaker.HalfOpen || v.Probe {
					t.Errorf("the probe's place is not free: %+v", v)
				}
				if _, err := do(background, u, answers(nil)); err != nil {
					t.Errorf("the next call: %v", err)
				}
			})
		})
	}
}

func TestCallerWhoLeavesTheLineGivesHisTurnBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("all", 1, sec, 1)), weir.Options{})
		_, _ = do(background, u, answers(nil))
		ctx, cancel := context.WithCancelCause(background)
		var wg sync.WaitGroup
		wg.Go(func() {
			a := answers(nil)
			if _, err := do(ctx, u, a); err != errLeft || a.n != 0 {
				t.Errorf("got %v after %d calls, want the cause and no call", err, a.n)
			}
		})
		pass(500 * ms)
		cancel(errLeft)
		wg.Wait()
		start := clock.System.Now()
		if _, err := do(background, u, answers(nil)); err != nil || since(start) != 500*ms {
			t.Errorf("the next caller waited %v, want the 500ms that are left; %v", since(start), err)
		}
	})
}

func TestCallerWhoLeavesIsHeldAgainstNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("all", 1, time.Hour, 5))
		p.Breaker = breaker.Config{Failures: 1}
		u := open(t, p, weir.Options{})
		ctx, cancel := context.WithCancelCause(background)
		calls := 0
		_, err := weir.Do(ctx, u, weir.Call{Safe: true}, func(ctx context.Context) (int, error) {
			calls++
			cancel(errLeft)
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if err != context.Canceled || calls != 1 {
			t.Errorf("got %v after %d calls, want what fn returned after 1", err, calls)
		}
		if v := u.Look(0).Breakers[0]; v.Phase != breaker.Closed || v.Failed != 0 {
			t.Errorf("breaker: %+v", v)
		}
		if _, err := do(ctx, u, answers(nil)); err != errLeft || left(t, u, "all", "") != 4 {
			t.Errorf("a call after the end: %v, %d left; want the cause, and no token taken", err, left(t, u, "all", ""))
		}
	})
}

func TestCallerWhoLeavesBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Budget = retry.BudgetConfig{Floor: 0.1} // one retry per 10 s
		u := open(t, p, weir.Options{})
		ctx, cancel := context.WithTimeoutCause(background, time.Hour, errLeft)
		var wg sync.WaitGroup
		wg.Go(func() {
			a := answers(errFailed)
			_, err := do(ctx, u, a)
			g := gaveUp(t, err)
			if a.n != 1 || g.Attempts != 1 || g.Why != context.Canceled || g.Last != errFailed {
				t.Errorf("got %+v after %d calls", g, a.n)
			}
		})
		pass(50 * ms)
		cancel()
		wg.Wait()
		if n := u.Look(0).RetriesLeft; n != 1 {
			t.Errorf("%d retries left, want the unspent one", n)
		}
	})
}

func TestRefusedRetryIsNotPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("all", 1, time.Hour, 1))
		p.Budget = retry.BudgetConfig{Floor: 0.1}
		u := open(t, p, weir.Options{})
		_, err := do(background, u, answers(errFailed))
		g := gaveUp(t, err)
		if r := refusal(t, g.Why); r.Limit != "all" || g.Attempts != 1 || g.Last != errFailed {
			t.Errorf("got %+v", g)
		}
		if n := u.Look(0).RetriesLeft; n != 1 {
			t.Errorf("%d retries left, want the unspent one", n)
		}
	})
}

func TestBreakerThatOpensMeanwhileStopsTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Breaker, p.Retry.Attempts = breaker.Config{}, 5
		u, a := open(t, p, weir.Options{}), answers(errFailed)
		once := weir.Call{} // not safe, so not repeated
		_, err := weir.Do(background, u, weir.Call{Safe: true}, func(ctx context.Context) (int, error) {
			for range 10 * a.n { // other callers
				_, _ = weir.Do(background, u, once, answers(errFailed).call)
			}
			return a.call(ctx)
		})
		if r := refusal(t, gaveUp(t, err).Why); a.n != 3 || r.Reason != weir.CircuitOpen {
			t.Errorf("%v after %d attempts, want circuit_open after 3", err, a.n)
		}
	})
}

// A breaker that opens while a call waits for its turn stops that call, and its token returns.
func TestBreakerThatOpensWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("all", 1, sec, 1))
		p.Breaker = breaker.Config{}
		u := open(t, p, weir.Options{})
		_, _ = do(background, u, answers(nil))
		var wg sync.WaitGroup
		wg.Go(func() {
			a := answers(nil)
			_, err := do(background, u, a)
			if r := refusal(t, err); r.Reason != weir.CircuitOpen || r.RetryAfter != time.Hour || a.n != 0 {
				t.Errorf("got %v after %d calls", r, a.n)
			}
		})
		pass(500 * ms)
		begin := clock.System.Now()
		u.Breaker("").ForceOpen(u.Now(), time.Hour)
		if wg.Wait(); since(begin) != 0 {
			t.Errorf("heard of it after %v, want at once", since(begin))
		}
		pass(500 * ms)
		if n := left(t, u, "all", ""); n != 1 {
			t.Errorf("%d left, want the token back", n)
		}
	})
}

func TestUnsentAttemptCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("all", 1, time.Hour, 10)), weir.Options{})
		_, _ = do(background, u, answers(errUnsent, errFailed, nil))
		if n := left(t, u, "all", ""); n != 8 {
			t.Errorf("%d left of 10 after one unsent attempt and two others, want 8", n)
		}
	})
}

func TestUsageIsSettled(t *testing.T) {
	l := rate("tokens", 1, time.Hour, 100)
	l.Unit = "tokens"
	u := open(t, steady(l), weir.Options{})
	// A hint long after the permit counts from the response on.
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("all", 1, sec, 10))
		p.Limits[0].Unit = "tokens"
		u := open(t, p, weir.Options{})
		permit, _ := try(u, weir.Call{Cost: map[string]int64{"tokens": 1}})
		pass(time.Minute)
		permit.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 9}})
		if n := left(t, u, "all", ""); n != 2 {
			t.Errorf("%d left after 8 of debt, want 2", n)
		}
	})
	for _, c := range []struct{ reserved, used, want int64 }{{50, 20, 80}, {10, 30, 50}, {10, 10, 40}, {10, 0, 40}} {
		p, d := try(u, weir.Call{Cost: map[string]int64{"tokens": c.reserved}})
		if !d.Allowed {
			t.Fatalf("%+v refused: %+v", c, d)
		}
		p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": c.used}})
		if n := left(t, u, "tokens", ""); n != c.want {
			t.Errorf("%+v: %d left", c, n)
		}
	}
}
