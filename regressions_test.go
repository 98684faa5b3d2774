package weir_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Each test covers a mistake that was found by experiment.

type gate func() error

func (g gate) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) { return nil, g() }

func TestGateThatPanicsHandsAllBack(t *testing.T) {
	l, c := &ledger{}, &leap{At: 1000 * sec}
	u := open(t, weir.Policy{}, weir.Options{Clock: c, Gates: []weir.Gate{l, gate(func() error { panic("gate") })}})
	u.Breaker("").ForceOpen(u.Now(), 1)
	c.At += sec
	func() {
		defer func() { _ = recover() }()
		_, _ = do(background, u, answers(nil))
	}()
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if u.Breaker("").Look(u.Now()).Probe {
		t.Error("the probe is still waited for")
	}
}

func TestRefusedCallsEarnNoRetries(t *testing.T) {
	u := open(t, weir.Policy{Retry: retry.Config{Jitter: retry.NoJitter, Base: ms}},
		weir.Options{Clock: &leap{At: 1000 * sec}})
	u.Breaker("").ForceOpen(u.Now(), 0)
	for range 10_000 {
		_, _ = do(background, u, answers(nil))
	}
	u.Breaker("").ForceClose(u.Now()) // only the budget is tested here
	sent := 0
	for range 100 {
		r := answers(errFailed)
		_, _ = do(background, u, r)
		sent += r.n
	}
	if sent > 100+10+10+1 { // a tenth of the calls, one per second for ten seconds, and one for the elapsed time
		t.Errorf("%d attempts for 100 calls that were allowed", sent)
	}
}

func TestProbeThatWaitedTooLongIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate("l", 1, 40*sec, 1)
		l.Operations = []string{"slow"}
		p := weir.Policy{Limits: []limit.Limit{l}, MaxWait: time.Minute, Timeouts: weir.Timeouts{Call: 5 * time.Minute}}
		p.Operations = []weir.Operation{{Name: "slow"}, {Name: "fast"}}
		p.Retry.Attempts, p.BreakerScope = 1, weir.WholeUpstream
		p.Breaker, _ = breaker.Schedule("five-a-minute") // it is open for 30s
		u := open(t, p, weir.Options{})
		_, _ = weir.Do(background, u, weir.Call{Operation: "slow"}, answers(nil).call)
		u.Breaker("").ForceOpen(u.Now(), sec)
		pass(sec)
		waiting := answers(nil)
		done := make(chan error)
		go func() {
			_, err := weir.Do(background, u, weir.Call{Operation: "slow"}, waiting.call)
			done <- err
		}()
		pass(32 * sec) // the first probe has been lost
		_, _ = weir.Do(background, u, weir.Call{Operation: "fast"}, answers(errFailed).call)
		if err := <-done; waiting.n > 0 || refusal(t, err).Reason != weir.CircuitOpen {
			t.Errorf("sent %d times into an open breaker, %v", waiting.n, err)
		}
	})
}

func TestBreakerThatOpensDuringAGateIsObeyed(t *testing.T) {
	c := &leap{At: 1000 * sec}
	var u *weir.Upstream
	u = open(t, weir.Policy{}, weir.Options{Clock: c, Gates: []weir.Gate{gate(func() error {
		c.At += sec
		u.Breaker("").ForceOpen(u.Now(), 0)
		return nil
	})}})
	r := answers(nil)
	if _, err := do(background, u, r); r.n > 0 || refusal(t, err).Reason != weir.CircuitOpen {
		t.Errorf("sent %d times, %v", r.n, err)
	}
}

func TestLimitThatACallCostsNothingIsLeftAlone(t *testing.T) {
	b := rate("bytes", 1000, sec, 1000)
	b.Unit, b.Adaptive = "bytes", adaptive.Config{On: true}
	p := steady(rate("requests", 1000, sec, 1000), b)
	p.Retry.Attempts = 1
	u := open(t, p, weir.Options{Clock: &leap{At: 1000 * sec}})
	_, _ = do(background, u, answers(hinted(30*sec)))
	for _, v := range u.Look(0).Limits {
		if v.Limit.Name == "bytes" && (v.Level.Paused > 0 || v.Level.PerSecond < 999) {
			t.Errorf("paused for %v, rate %v", v.Level.Paused, v.Level.PerSecond)
		}
	}
}

func TestHugeTimesAreNoTimesInThePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("l", 1, 5*sec, 1))
		p.Timeouts.Call, p.Timeouts.Attempt, p.MaxWait, p.MaxPause = math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64
		u := open(t, p, weir.Options{})
		if _, err := do(background, u, answers(nil)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(background, sec)
		defer cancel()
		at := u.Now()
		if _, err := do(ctx, u, answers(nil)); err == nil || since(at) > 0 {
			t.Errorf("waited %v for a turn that comes too late, %v", since(at), err)
		}
		var permit weir.Permit
		pass(5 * sec)
		u.Try(weir.Call{}, &permit)
		permit.Report(outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: math.MaxInt64}})
		pass(10 * sec)
		if u.Try(weir.Call{}, &permit).Allowed {
			t.Error("a hint of for ever paused nothing")
		}
	})
}

func TestBreakerHeldOpenSaysSo(t *testing.T) {
	for _, now := range []time.Duration{0, 1000 * sec} {
		u := open(t, weir.Policy{}, weir.Options{Clock: &leap{At: now}})
		u.Breaker("").ForceOpen(u.Now(), 0)
		_, err := do(background, u, answers(nil))
		if errors.Is(err, weir.ErrTooMuch) || !strings.Contains(err.Error(), "until an operator resets the breaker") {
			t.Errorf("at %v: %v", now, err)
		}
	}
}

func TestAcquireAfterTheCallerLeft(t *testing.T) {
	u := open(t, weir.Policy{}, weir.Options{})
	ctx, cancel := context.WithCancelCause(background)
	cancel(errLeft)
	if p, err := u.Acquire(ctx, weir.Call{}); p != nil || !errors.Is(err, errLeft) {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestCallsOwnTimeIsNotTheUpstreamsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("l", 1, sec, 1))
		p.Breaker = breaker.Config{}
		p.Timeouts.Call = 1050 * ms
		u := open(t, p, weir.Options{})
		_, _ = do(background, u, answers(nil))
		_, err := weir.Do(background, u, weir.Call{}, func(ctx context.Context) (int, error) {
			<-ctx.Done() // after 50 ms of the 10 s for an attempt
			return 0, ctx.Err()
		})
		if n := u.Breaker("").Look(u.Now()).Failed; n > 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d failures counted, %v", n, err)
		}
	})
}

func TestPausedCallersWaitWithoutALimitToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		_, _ = do(background, u, answers(hinted(2*sec), nil))
		go func() { _, _ = do(background, u, answers(hinted(2*sec), nil)) }()
		pass(ms)
		at := u.Now()
		if _, err := do(background, u, answers(nil)); err != nil || since(at) < sec {
			t.Errorf("after %v: %v", since(at), err)
		}
		pass(10 * sec)
	})
}

func TestRaisedLimitLetsWaitersGoSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("l", 1, 5*sec, 1))
		u := open(t, p, weir.Options{})
		_, _ = do(background, u, answers(nil))
		done := make(chan time.Duration)
		at := u.Now()
		go func() {
			_, _ = do(background, u, answers(nil))
			done <- since(at)
		}()
		pass(500 * ms)
		p.Limits[0].Rate = bucket.Rate{Amount: 20, Per: 5 * sec, Burst: 1}
		if err := u.Set(p); err != nil {
			t.Fatal(err)
		}
		if took := <-done; took > 2500*ms {
			t.Errorf("went after %v, though its turn came after 1.6s", took)
		}
	})
}
