package weir_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/retry"
)

// A call with a MaxWait waits at most that long in total, for any cause. It does not wait if that cannot help.
func TestCallWaitsNoLongerThanItsMaxWait(t *testing.T) {
	slow := func(p *weir.Policy) {
		p.Retry = retry.Config{Attempts: 5, Base: 400 * ms, Cap: 400 * ms, Jitter: retry.NoJitter}
	}
	fair := func(p *weir.Policy) { p.Fair.By = "user" }
	for name, c := range map[string]struct {
		policy weir.Policy
		taken  bool    // an earlier call has taken the available units
		errs   []error // of its attempts
		want   time.Duration
	}{
		"a limit":          {policy: steady(rate("all", 1, 10*sec, 1)), taken: true},
		"a limit in turn":  {policy: with(steady(rate("all", 1, 10*sec, 1)), fair), taken: true},
		"a limit, shortly": {policy: steady(rate("all", 10, sec, 1)), taken: true, errs: []error{nil}, want: 100 * ms},
		"a slot":           {policy: bounded(1), taken: true, want: sec},
		"a hint":           {policy: steady(), errs: []error{hinted(5 * sec), nil}},
		"a short hint":     {policy: steady(), errs: []error{hinted(500 * ms), nil}, want: 500 * ms},
		"retries":          {policy: with(steady(), slow), errs: []error{errFailed, errFailed, errFailed, errFailed}, want: 800 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := open(t, c.policy, weir.Options{})
				if c.taken {
					if _, d := try(u, weir.Call{}); !d.Allowed {
						t.Fatalf("the call before: %+v", d)
					}
				}
				begin, a := clock.System.Now(), answers(c.errs...)
				_, err := weir.Do(background, u, weir.Call{Safe: true, MaxWait: sec}, a.call)
				if ok := len(c.errs) > 0 && c.errs[len(c.errs)-1] == nil && c.want > 0; (err == nil) != ok {
					t.Errorf("%v", err)
				}
				if took := since(begin); took < c.want || took > c.want+50*ms {
					t.Errorf("took %v and %d attempts, want %v", took, a.n, c.want)
				}
			})
		})
	}
}
