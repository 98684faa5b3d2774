package weir_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func set(t testing.TB, u *weir.Upstream, p weir.Policy) {
	t.Helper()
	if err := u.Set(p); err != nil {
		t.Fatal(err)
	}
}

func TestSetKeepsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(rate("a", 1, time.Hour, 10), scoped(rate("b", 1, time.Hour, 10), "tenant")), weir.Options{})
		call := weir.Call{Keys: map[string]string{"tenant": "x"}}
		for range 7 {
			p, _ := try(u, call)
			p.Report(outcome.Outcome{Class: outcome.OK})
		}
		for _, c := range []struct {
			burst int64
			want  int64
		}{{10, 3}, {20, 3}, {2, 2}, {10, 2}} {
			set(t, u, steady(rate("a", 2, time.Hour, c.burst), scoped(rate("b", 2, time.Hour, c.burst), "tenant")))
			if a, b := left(t, u, "a", ""), left(t, u, "b", "x"); a != c.want || b != c.want {
				t.Errorf("burst %d: %d and %d left, want %d", c.burst, a, b, c.want)
			}
		}
		pass(time.Hour)
		if n := left(t, u, "a", ""); n != 4 {
			t.Errorf("%d left after an hour at the new 2 an hour, want 4", n)
		}
	})
}

// A limit that may be an old one under another name, scope or unit starts empty for every key. Otherwise, toggling
// between two names would refill it repeatedly.
func TestSetHandsOutNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := rate("l", 1, time.Hour, 5)
		u := open(t, steady(l), weir.Options{})
		got := 0
		spend := func() {
			for range 6 {
				p, d := try(u, weir.Call{Keys: map[string]string{"tenant": "x"}, Cost: map[string]int64{"bytes": 1}})
				if d.Allowed {
					got++
					p.Report(outcome.Outcome{Class: outcome.OK})
				}
			}
		}
		renamed, bytes := rate("renamed", 1, time.Hour, 5), l
		bytes.Unit = "bytes"
		for _, limits := range [][]limit.Limit{{l}, {scoped(l, "tenant")}, {l}, {renamed}, {l}, {bytes}, {l}} {
			set(t, u, steady(limits...))
			if len(limits) > 0 {
				spend()
			}
		}
		if got != 5 {
			t.Errorf("%d went, want the 5 there were at the start", got)
		}
		pass(10 * time.Hour)
		if spend(); got != 10 {
			t.Errorf("%d went after it had time to fill, want 5 more", got)
		}
	})
}

func TestSetKeepsTheLearntRate(t *testing.T) {
	l := rate("l", 1000, sec, 1000)
	l.Adaptive.On = true
	p := steady(l)
	p.Retry.Attempts = 1
	u := open(t, p, weir.Options{Clock: &leap{At: 1000 * sec}})
	_, _ = do(background, u, answers(errThrottled))
	before := u.Look(0).Limits[0].Level.PerSecond
	p.Limits = []limit.Limit{l}
	p.Limits[0].MaxKeys = 10
	set(t, u, p)
	if after := u.Look(0).Limits[0].Level.PerSecond; before > 999 || after != before {
		t.Errorf("runs at %v, and at %v when another field has changed", before, after)
	}
}

func TestSetAppliesToTheNextDecision(t *testing.T) {
	u := open(t, steady(), weir.Options{})
	set(t, u, steady(rate("new", 1, time.Hour, 1)))
	if _, d := try(u, weir.Call{}); !d.Allowed {
		t.Errorf("an added limit is not full: %+v", d)
	}
	if _, d := try(u, weir.Call{}); d.Allowed || d.Reason != weir.RateLimited {
		t.Errorf("the added limit lets two go at once: %+v", d)
	}
	set(t, u, steady())
	if _, d := try(u, weir.Call{}); !d.Allowed {
		t.Errorf("a limit that is gone refuses: %+v", d)
	}
}

func TestSetKeepsBreakers(t *testing.T) {
	for _, scope := range []string{"", "host"} {
		p := weir.Policy{Breaker: breaker.Config{Failures: 2}, BreakerScope: scope}
		u := open(t, p, weir.Options{})
		u.Breaker("h").ForceOpen(u.Now(), time.Hour)
		p.Limits = []limit.Limit{rate("a", 1, sec, 0)}
		set(t, u, p)
		if _, d := try(u, weir.Call{Keys: map[string]string{"host": "h"}}); d.Reason != weir.CircuitOpen {
			t.Errorf("scope %q: %+v, want circuit_open", scope, d)
		}
		p.Breaker.Failures, p.Limits = 3, nil
		set(t, u, p)
		if _, d := try(u, weir.Call{Keys: map[string]string{"host": "h"}}); d.Reason != weir.CircuitOpen {
			t.Errorf("scope %q: other rules close a breaker that was forced open: %+v", scope, d)
		}
		u.Breaker("h").Reset(u.Now())
		for range 3 {
			p, d := try(u, weir.Call{Keys: map[string]string{"host": "h"}})
			if !d.Allowed {
				t.Fatalf("scope %q: open before the third failure", scope)
			}
			p.Report(outcome.Outcome{Class: outcome.Failed})
		}
		if _, d := try(u, weir.Call{Keys: map[string]string{"host": "h"}}); d.Allowed {
			t.Errorf("scope %q: the new rule of 3 failures is not in force", scope)
		}
	}
}

func TestSetKeepsBudgetAndPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := weir.Policy{Budget: retry.BudgetConfig{Floor: 0.1}, Retry: retry.Config{Attempts: 2}}
		u := open(t, p, weir.Options{})
		_, _ = do(background, u, answers(errFailed))
		_, _ = weir.Do(background, u, weir.Call{}, answers(&bad{O: outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: time.Minute}}}).call)
		set(t, u, p)
		p.MaxWait = sec
		set(t, u, p)
		v := u.Look(0)
		if v.RetriesLeft != 0 || len(v.Pauses) != 1 || v.Pauses[0].Left != time.Minute {
			t.Errorf("%d retries left, pauses %v; want none and one", v.RetriesLeft, v.Pauses)
		}
		p.Quota = &retry.QuotaConfig{Capacity: 77}
		if set(t, u, p); u.Look(0).RetriesLeft != 77 {
			t.Errorf("%d left in a new quota of 77", u.Look(0).RetriesLeft)
		}
	})
}

func TestSetOfABadPolicyChangesNothing(t *testing.T) {
	u := open(t, steady(rate("a", 1, time.Hour, 1)), weir.Options{})
	err := u.Set(weir.Policy{Limits: []limit.Limit{{}}})
	if err == nil || !strings.HasPrefix(err.Error(), "upstream api: ") || len(u.Policy().Limits) != 1 || u.Policy().Limits[0].Name != "a" {
		t.Errorf("got %v and policy %+v", err, u.Policy())
	}
}

// A call in progress continues with its initial policy, and settles with the limits from which it took units.
func TestSetDoesNotDisturbCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady(rate("a", 1, time.Hour, 10))
		p.Retry.Attempts = 5
		u := open(t, p, weir.Options{})
		calls := 0
		_, err := do(background, u, answers(errFailed))
		if g := gaveUp(t, err); g.Attempts != 5 {
			t.Fatal(g)
		}
		_, err = weir.Do(background, u, weir.Call{Safe: true}, func(context.Context) (int, error) {
			if calls++; calls == 1 {
				set(t, u, weir.Policy{Retry: retry.Config{Attempts: 1}, Breaker: p.Breaker})
			}
			return 0, errFailed
		})
		if g := gaveUp(t, err); g.Attempts != 5 {
			t.Errorf("%d attempts, want the 5 of the policy it began with", g.Attempts)
		}
		if _, err = do(background, u, answers(errFailed)); gaveUp(t, err).Attempts != 1 {
			t.Errorf("the next call makes %d attempts", gaveUp(t, err).Attempts)
		}
	})
}

// Policies are changed while many goroutines make calls. Whichever burst is in force, at most the largest one may be
// used.
func TestConcurrentSet(t *testing.T) {
	u := open(t, steady(rate("a", 1, 24*time.Hour, 100)), weir.Options{})
	var sent atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				_, err := weir.Do(background, u, weir.Call{}, func(context.Context) (int, error) { sent.Add(1); return 0, nil })
				if _, refused := errors.AsType[*weir.Refusal](err); err != nil && !refused {
					t.Error(err)
				}
				u.Look(10)
			}
		})
	}
	for i := range 2 {
		wg.Go(func() {
			for j := range 200 {
				p := steady(rate("a", 1, 24*time.Hour, int64(100-(i+j)%50)), scoped(rate("b", 1000+int64(j), sec, 0), "tenant"))
				p.Breaker = breaker.Config{Failures: 1 + j%3}
				if err := u.Set(p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := sent.Load(); n > 100 || n < 50 {
		t.Errorf("%d calls went, want 50 to 100", n)
	}
}
