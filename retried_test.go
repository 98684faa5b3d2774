package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Retries are counted separately from first attempts: their number, successes and duration. The last error and the
// number of breaker openings are also recorded.
func TestHowRetriesFared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, weir.Policy{
			Retry: retry.Config{Attempts: 3, Base: time.Millisecond}, Budget: retry.BudgetConfig{Off: true},
			Breaker: breaker.Config{Failures: 2, Open: time.Second, Successes: 1},
		}, weir.Options{Events: weir.Events{Counts: func(*weir.Counts) {}}})
		if v := u.Retries(); v != (weir.RetryView{Last: weir.ErrorView{Class: outcome.OK}}) {
			t.Errorf("before any call: %+v", v)
		}
		call := func(fails int) {
			_, _ = weir.Do(context.Background(), u, weir.Call{Safe: true}, func(context.Context) (int, error) {
				if fails--; fails >= 0 {
					time.Sleep(10 * time.Millisecond)
					return 0, errThrottled
				}
				time.Sleep(100 * time.Millisecond)
				return 1, nil
			})
		}
		call(0)
		call(1) // its retry succeeds
		call(2) // its second retry succeeds
		v := u.Retries()
		if mean := 70 * time.Millisecond; v.Made != 3 || v.Succeeded != 2 || (v.Mean-mean).Abs() > time.Millisecond || v.P99 < 100*time.Millisecond || v.P99 > 110*time.Millisecond {
			t.Errorf("%+v, want 2 of 3, 70 ms on average, p99 about 100 ms", v)
		}
		time.Sleep(time.Second)
		v = u.Retries()
		if e := v.Last; e.Class != outcome.Throttled || e.Operation != weir.DefaultOperation || e.Ago < time.Second || e.Ago > 2*time.Second {
			t.Errorf("the last error: %+v, want a throttle a second ago and more", e)
		}
		if v.Breaks != 0 {
			t.Errorf("%d breaks, want none", v.Breaks)
		}
		fail := func() {
			p, err := u.Acquire(context.Background(), weir.Call{})
			if err != nil {
				t.Fatal(err)
			}
			p.Report(outcome.Outcome{Class: outcome.Failed, Code: "503"})
		}
		fail()
		fail() // opens
		time.Sleep(2 * time.Second)
		fail() // the probe: the breaker opens again, but was not closed
		if v = u.Retries(); v.Breaks != 1 || v.Made != 3 || v.Last.Code != "503" {
			t.Errorf("%+v, want one break, and 503", v)
		}
		if _, err := u.Acquire(context.Background(), weir.Call{}); !errors.As(err, new(*weir.Refusal)) {
			t.Errorf("got %v, want a refusal", err)
		}
	})
}
