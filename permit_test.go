package weir_test

import (
	"context"
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
)

var ok = outcome.Outcome{Class: outcome.OK}

func TestTryNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("all", 1, sec, 1)), weir.Options{})
		first, d := try(u, weir.Call{})
		if !d.Allowed || d.RetryAfter != 0 {
			t.Fatalf("first: %+v", d)
		}
		first.Report(ok)
		if _, d := try(u, weir.Call{}); d.Allowed || d.Reason != weir.RateLimited || d.RetryAfter.Round(ms) != sec {
			t.Errorf("second: %+v, want rate_limited for 1s", d)
		}
		pass(sec)
		if _, d := try(u, weir.Call{}); !d.Allowed {
			t.Errorf("after a second: %+v", d)
		}
	})
}

func TestAcquireWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("all", 1, sec, 1)), weir.Options{})
		start := clock.System.Now()
		for range 3 {
			p, err := u.Acquire(background, weir.Call{})
			if err != nil {
				t.Fatal(err)
			}
			p.Report(ok)
		}
		if since(start) != 2*sec {
			t.Errorf("took %v, want 2s", since(start))
		}
		ctx, cancel := context.WithTimeout(background, 900*ms)
		defer cancel()
		if p, err := u.Acquire(ctx, weir.Call{}); p != nil || refusal(t, err).Reason != weir.RateLimited || since(start) != 2*sec {
			t.Errorf("got %v, %v after %v; want a refusal at once", p, err, since(start)-2*sec)
		}
	})
}

func TestAcquireEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("all", 1, sec, 1)), weir.Options{})
		ctx, cancel := context.WithCancelCause(background)
		_, _ = try(u, weir.Call{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if p, err := u.Acquire(ctx, weir.Call{}); p != nil || err != errLeft {
				t.Errorf("got %v, %v", p, err)
			}
		})
		pass(ms)
		cancel(errLeft)
		wg.Wait()
	})
}

func TestOnlyTheFirstReportCounts(t *testing.T) {
	book := &ledger{}
	p := steady()
	p.Breaker = breaker.Config{Failures: 2}
	u := open(t, p, weir.Options{Gates: []weir.Gate{book}})
	permit, err := u.Acquire(background, weir.Call{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		permit.Report(errFailed.O)
	}
	if v := u.Look(0).Breakers[0]; v.Failed != 1 || book.Check() != nil {
		t.Errorf("the breaker counts %d failures; %v", v.Failed, book.Check())
	}
}

func TestRefusedPermitMayBeReported(t *testing.T) {
	u := open(t, weir.Policy{Breaker: breaker.Config{Failures: 1}}, weir.Options{})
	u.Breaker("").ForceOpen(u.Now(), time.Hour)
	p, d := try(u, weir.Call{})
	if d.Allowed {
		t.Fatal("allowed")
	}
	p.Report(errFailed.O)
	new(weir.Permit).Report(ok)
}

// A permit can be reused for later calls, also after a wait or with custom gates.
func TestPermitMayBeUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		book := &ledger{}
		u := open(t, steady(rate("all", 1, sec, 1), scoped(rate("tenant", 1, sec, 1), "tenant")), weir.Options{Gates: []weir.Gate{book}})
		p, err := u.Acquire(background, weir.Call{})
		if err != nil {
			t.Fatal(err)
		}
		p.Report(ok)
		for i := range 20 {
			call := weir.Call{Keys: map[string]string{"tenant": string(rune('a' + i%3))}}
			want := i > 0 && i%2 == 0
			if d := u.Try(call, p); d.Allowed != want {
				t.Errorf("%d: %+v, want allowed %v", i, d, want)
			}
			p.Report(ok)
			pass(500 * ms)
		}
		if err := book.Check(); err != nil {
			t.Error(err)
		}
	})
}

func TestTryAsksNoOtherGates(t *testing.T) {
	book := &ledger{}
	p, _ := try(open(t, weir.Policy{}, weir.Options{Gates: []weir.Gate{book}}), weir.Call{})
	if p.Report(ok); book.Admitted != 0 {
		t.Errorf("%d permits of the gate", book.Admitted)
	}
}

// A shut gate refuses.
type shut struct{ err error }

func (s shut) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) { return nil, s.err }

// A silent gate admits and needs no report.
type silent struct{}

func (silent) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) { return nil, nil }

func TestGateThatRefusesHandsAllBack(t *testing.T) {
	book, why := &ledger{}, &weir.Refusal{Reason: weir.ConcurrencyLimited}
	u := open(t, steady(rate("all", 1, time.Hour, 5)), weir.Options{Gates: []weir.Gate{book, silent{}, shut{why}}})
	a := answers(nil)
	if _, err := do(background, u, a); err != why || a.n != 0 {
		t.Errorf("got %v after %d calls", err, a.n)
	}
	if err := book.Check(); err != nil || book.Last != outcome.Canceled || left(t, u, "all", "") != 5 {
		t.Errorf("%v, reported %v; %d left", err, book.Last, left(t, u, "all", ""))
	}
}

func TestKeysAndCosts(t *testing.T) {
	tokens := scoped(rate("tokens", 1, time.Hour, 100), "tenant")
	tokens.Unit = "tokens"
	u := open(t, steady(rate("requests", 1, time.Hour, 10), tokens), weir.Options{})
	for _, c := range []struct {
		call             weir.Call
		requests, tokens int64
	}{
		{weir.Call{Keys: map[string]string{"tenant": "a"}}, 9, 100},
		{weir.Call{Keys: map[string]string{"tenant": "a"}, Cost: map[string]int64{"tokens": 30}}, 8, 70},
		{weir.Call{Keys: map[string]string{"tenant": "a"}, Cost: map[string]int64{"tokens": 30, "requests": 3}}, 5, 40},
		{weir.Call{Keys: map[string]string{"tenant": "a"}, Cost: map[string]int64{"requests": 0}}, 5, 40},
	} {
		p, d := try(u, c.call)
		if p.Report(ok); !d.Allowed || left(t, u, "requests", "") != c.requests || left(t, u, "tokens", "a") != c.tokens {
			t.Errorf("%+v: %+v; %d requests and %d tokens left, want %d and %d",
				c.call, d, left(t, u, "requests", ""), left(t, u, "tokens", "a"), c.requests, c.tokens)
		}
	}
}

// Keys that differ only at the end stay different, and use bounded memory.
func TestLongKeysAreTamed(t *testing.T) {
	u := open(t, steady(scoped(rate("tenant", 1, time.Hour, 1), "tenant")), weir.Options{})
	long := strings.Repeat("x", 1<<16)
	for _, key := range []string{long + "a", long + "b"} {
		if _, d := try(u, weir.Call{Keys: map[string]string{"tenant": key}}); !d.Allowed {
			t.Error("two long keys share a limit")
		}
	}
	for _, v := range u.Look(10).Limits {
		if len(v.Key) > 256 {
			t.Errorf("a key of %d bytes is kept", len(v.Key))
		}
	}
}

func TestBreakerPerKey(t *testing.T) {
	p := weir.Policy{Breaker: breaker.Config{Failures: 1}, BreakerScope: "host"}
	u := open(t, p, weir.Options{})
	on := func(host string) weir.Call { return weir.Call{Keys: map[string]string{"host": host}} }
	permit, _ := try(u, on("a"))
	permit.Report(errFailed.O)
	if _, d := try(u, on("a")); d.Reason != weir.CircuitOpen {
		t.Errorf("a: %+v", d)
	}
	if _, d := try(u, on("b")); !d.Allowed {
		t.Errorf("b: %+v", d)
	}
	if n := len(u.Look(0).Breakers); n != 2 {
		t.Errorf("%d breakers, want 2", n)
	}
}

func TestLookShowsKeysAndPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(scoped(rate("tenant", 1, sec, 5), "tenant")), weir.Options{})
		for _, key := range []string{"a", "b", "c"} {
			p, _ := try(u, weir.Call{Keys: map[string]string{"tenant": key}})
			p.Report(hinted(sec).O)
		}
		view := u.Look(2)
		if view.Name != "api" || len(view.Limits) != 2 || u.Name() != "api" {
			t.Errorf("%d limiters of %s, want 2 keys", len(view.Limits), view.Name)
		}
		for _, v := range view.Limits {
			if v.Level.Left != 4 || v.Level.Paused != sec {
				t.Errorf("%s: %+v", v.Key, v.Level)
			}
		}
	})
}

func TestRefusalsReadWell(t *testing.T) {
	for want, r := range map[string]*weir.Refusal{
		"circuit_open: retry after 1.235s":      {Reason: weir.CircuitOpen, RetryAfter: 1234567 * time.Microsecond},
		"api put: rate_limited: retry after 0s": {Upstream: "api", Operation: "put", Reason: weir.RateLimited},
		"api: paused by limit all (5/min): retry after 0s": {
			Upstream: "api", Reason: weir.Paused, Limit: "all", Rule: limit.Limit{Rate: rate("", 5, time.Minute, 0).Rate}},
	} {
		if r.Error() != want {
			t.Errorf("got %q, want %q", r.Error(), want)
		}
	}
	if len(weir.Reasons) != 6 {
		t.Error("reasons are not those of the design")
	}
}
