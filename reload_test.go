package weir_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// What is tried again after a reload goes by the limits in force then, together with what comes: a limit that has
// got another name lets no more go than it says.
func TestARetryGoesByTheLimitsInForce(t *testing.T) {
	l := rate("q", 5, sec, 50)
	renamed, rescoped := l, scoped(l, "tenant")
	renamed.Name = "r"
	for _, to := range []limit.Limit{l, renamed, rescoped} {
		for i := range 4 {
			fair, shared := i&1 > 0, i&2 > 0
			synctest.Test(t, func(t *testing.T) {
				policy := func(l limit.Limit) weir.Policy {
					p := unbounded(l) // all fail at once, and none of that is to end the retries
					p.Retry = retry.Config{Jitter: retry.NoJitter, Base: 20 * sec, Cap: 20 * sec}
					p.MaxWait = 30 * sec
					if fair {
						p.Fair.By = "tenant"
					}
					return p
				}
				u := fleetOf(t, policy(l), shared)
				pass(3 * sec)
				var sends timesSent
				sends.calls(u, 50, errFailed, nil)
				pass(5 * sec)
				set(t, u, policy(to))
				pass(15 * sec)
				sends.calls(u, 50, nil)
				sends.wg.Wait()
				if over := overBucket(sends.all, l); over > 1e-6 || len(sends.all) != 150 {
					t.Errorf("%s by %q, fair %v, shared %v: %d sent, %v too many at once", to.Name, to.Scope, fair, shared, len(sends.all), over)
				}
			})
		}
	}
}

// timesSent is when attempts were made.
type timesSent struct {
	mu  sync.Mutex
	all []gone
	wg  sync.WaitGroup
}

// calls makes so many calls, whose attempts end so.
func (s *timesSent) calls(u *weir.Upstream, n int, ends ...error) {
	for range n {
		s.wg.Go(func() {
			i := 0
			_, _ = weir.Do(background, u, weir.Call{Safe: true, Keys: map[string]string{"tenant": "x"}}, func(context.Context) (int, error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.all = append(s.all, gone{at: u.Now()})
				i++
				return 0, ends[i-1]
			})
		})
	}
}

// A call that waits when a reload puts another limit in the place of its own is heard by that limit: one that learns
// or is told hears the answer, and what it used is counted where the limit's is.
func TestTheAnswerIsHeardByTheLimitThatTookItsPlace(t *testing.T) {
	was := rate("q", 1, sec, 1)
	learns, told, joined, other := rate("r", 1000, sec, 1000), rate("r", 1000, sec, 1000), rate("r", 1000, sec, 1000), rate("s", 1, time.Hour, 10)
	learns.Adaptive.On = true
	told.Told = "requests"
	joined.Of, other.Of = "all", "all"
	joined.If = limit.Match{Scope: "plan", NotIn: []string{"other"}}
	other.If = limit.Match{Scope: "plan", In: []string{"other"}}
	slow := outcome.Outcome{Class: outcome.Throttled, Undone: true}
	says := outcome.Outcome{Class: outcome.OK, Hint: outcome.Hint{Limits: []outcome.Level{{Name: "requests", Limit: 600, Remaining: 500, Window: time.Minute}}}}
	perSecond := func(u *weir.Upstream) float64 { return u.Look(0).Limits[0].Level.PerSecond }
	for name, c := range map[string]struct {
		to    []limit.Limit
		ends  outcome.Outcome
		heard func(*weir.Upstream) bool
	}{
		"learns": {[]limit.Limit{learns}, slow, func(u *weir.Upstream) bool { return perSecond(u) < 999 }},
		"told":   {[]limit.Limit{told}, says, func(u *weir.Upstream) bool { return perSecond(u) < 11 }},
		"joined": {[]limit.Limit{joined, other}, outcome.Outcome{Class: outcome.OK}, func(u *weir.Upstream) bool { return left(t, u, "s", "") == 9 }},
	} {
		for _, by := range []string{"", "tenant"} {
			synctest.Test(t, func(t *testing.T) {
				policy := func(l ...limit.Limit) weir.Policy {
					p := steady(l...)
					p.Fair.By = by
					return p
				}
				u := open(t, policy(append([]limit.Limit{was}, c.to[1:]...)...), weir.Options{})
				if p, d := try(u, weir.Call{}); d.Allowed {
					p.Report(outcome.Outcome{Class: outcome.OK})
				}
				done := make(chan error)
				go func() {
					p, err := u.Acquire(background, weir.Call{})
					if err == nil {
						p.Report(c.ends)
					}
					done <- err
				}()
				pass(100 * ms)
				set(t, u, policy(c.to...))
				if err := <-done; err != nil || !c.heard(u) {
					t.Errorf("%s, fair by %q: %v; not heard: %+v", name, by, err, u.Look(10).Limits)
				}
			})
		}
	}
}
