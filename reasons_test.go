package weir_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
)

// Each documented reason can occur in a call.
func TestEveryReasonIsMet(t *testing.T) {
	met := map[weir.Reason]func(t *testing.T) *weir.Upstream{
		weir.RateLimited: func(t *testing.T) *weir.Upstream {
			u := open(t, atOnce(rate("l", 1, time.Minute, 1)), weir.Options{})
			try(u, weir.Call{})
			return u
		},
		weir.QuotaExhausted: func(t *testing.T) *weir.Upstream {
			u := open(t, atOnce(daily("rpd", 1, "")), weir.Options{Clock: newWall("2026-01-01T12:00:00Z")})
			try(u, weir.Call{})
			return u
		},
		weir.ConcurrencyLimited: func(t *testing.T) *weir.Upstream {
			p := atOnce()
			p.Concurrency = weir.Concurrency{Limit: 1}
			u := open(t, p, weir.Options{})
			held, _ := try(u, weir.Call{})
			t.Cleanup(func() { held.Report(ok) })
			return u
		},
		weir.CircuitOpen: func(t *testing.T) *weir.Upstream {
			p := atOnce()
			p.Breaker = breaker.Config{Failures: 1}
			u := open(t, p, weir.Options{})
			held, _ := try(u, weir.Call{})
			held.Report(errFailed.O)
			return u
		},
		weir.Paused: func(t *testing.T) *weir.Upstream {
			u := open(t, atOnce(), weir.Options{})
			held, _ := try(u, weir.Call{})
			held.Report(hinted(time.Minute).O)
			return u
		},
		weir.ShuttingDown: func(t *testing.T) *weir.Upstream {
			u := open(t, steady(rate("l", 1, sec, 1)), weir.Options{}) // it would wait
			try(u, weir.Call{})
			u.Drain()
			return u
		},
	}
	for _, want := range weir.Reasons {
		play := met[want]
		if play == nil {
			t.Errorf("no call meets %s: add one here, or leave the reason out", want)
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			_, err := play(t).Acquire(background, weir.Call{})
			if r := refusal(t, err); r.Reason != want {
				t.Errorf("got %v, want %s", r, want)
			}
		})
	}
	for r := range met {
		if !slices.Contains(weir.Reasons[:], r) {
			t.Errorf("%s is not among Reasons", r)
		}
	}
}

// atOnce returns a policy without waits.
func atOnce(limits ...limit.Limit) weir.Policy {
	p := steady(limits...)
	p.MaxWait = -1
	return p
}
