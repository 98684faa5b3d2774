package weir_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A retry after a reload follows the limits in force then, together with new calls: a renamed limit is not exceeded.
func TestARetryGoesByTheLimitsInForce(t *testing.T) {
	l := rate("q", 5, sec, 50)
	renamed, rescoped := l, scoped(l, "tenant")
	renamed.Name = "r"
	for _, to := range []limit.Limit{l, renamed, rescoped} {
		for i := range 4 {
			fair, shared := i&1 > 0, i&2 > 0
			synctest.Test(t, func(t *testing.T) {
				policy := func(l limit.Limit) weir.Policy {
					p := unbounded(l) // all calls fail, which must not end the retries
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

// timesSent records when attempts were made.
type timesSent struct {
	mu  sync.Mutex
	all []gone
	wg  sync.WaitGroup
}

// calls makes n calls whose attempts have these results.
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

// If a reload replaces a waiting call's limit, the new limit gets the response: an adaptive or advertised limit
// learns from it, and the usage counts where the new limit counts.
func TestTheAnswerIsHeardByTheLimitThatTookItsPlace(t *testing.T) {
	was := rate("q", 1, sec, 1)
	learns, told, joined, other := rate("r", 1000, sec, 1000), rate("r", 1000, sec, 1000), rate("r", 1000, sec, 1000), rate("s", 1, time.Hour, 10)
	learns.Adaptive.On = true
	told.Advertised = "requests"
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

// A reload that does not change a call's limits leaves the order of waiting calls unchanged: the longest waiting call
// goes first, and the same calls are served as without the reload.
func TestAReloadOfOtherLimitsLeavesTheLinesAlone(t *testing.T) {
	a, b, some, more := rate("a", 5, sec, 1), rate("b", 5, sec, 1), rate("some", 1, time.Hour, 1), rate("more", 1000, sec, 1000)
	a.Operations, b.Operations, more.Operations = []string{"a"}, []string{"b"}, []string{"a"}
	some.If = limit.Match{Scope: "plan", In: []string{"free"}}
	for name, c := range map[string]struct{ from, to []limit.Limit }{
		"nothing":               {[]limit.Limit{a}, []limit.Limit{a}},
		"one more operation":    {[]limit.Limit{a}, []limit.Limit{a, b}},
		"one operation less":    {[]limit.Limit{b, a}, []limit.Limit{a}},
		"one of some callers":   {[]limit.Limit{a}, []limit.Limit{some, a}},
		"none of some callers":  {[]limit.Limit{a, some}, []limit.Limit{a}},
		"the order of the file": {[]limit.Limit{a, more, b}, []limit.Limit{b, more, a}},
	} {
		for i := range 4 {
			fair, shared := i&1 > 0, i&2 > 0
			synctest.Test(t, func(t *testing.T) {
				policy := func(l []limit.Limit) weir.Policy {
					p := weir.Policy{Operations: []weir.Operation{{Name: "a"}, {Name: "b"}}, Limits: l}
					if fair {
						p.Fair.By = "tenant"
					}
					return p
				}
				u := fleetOf(t, policy(c.from), shared)
				pass(3 * sec)
				first := acquires(u, 45)
				pass(5 * sec)
				later := acquires(u, 24)
				pass(100 * ms)
				set(t, u, policy(c.to))
				pass(20 * sec)
				if n := first.Load(); n != 45 {
					t.Errorf("%s, fair %v, shared %v: %d of the first 45 went, and %d of those who came later", name, fair, shared, n, later.Load())
				}
			})
		}
	}
}

// A waiting call notices immediately that its limit was replaced, however late its turn would have been.
func TestWhoWaitsHearsAtOnceOfTheLimitThatTookItsPlace(t *testing.T) {
	slow, quick := rate("q", 1, time.Minute, 1), rate("r", 1000, sec, 1000)
	for i := range 4 {
		fair, shared := i&1 > 0, i&2 > 0
		synctest.Test(t, func(t *testing.T) {
			policy := func(l limit.Limit) weir.Policy {
				p := weir.Policy{Limits: []limit.Limit{l}, MaxWait: time.Hour}
				if fair {
					p.Fair.By = "tenant"
				}
				return p
			}
			u := fleetOf(t, policy(slow), shared)
			pass(3 * sec)
			went := acquires(u, 10)
			pass(10*sec + 500*ms)
			set(t, u, policy(quick))
			pass(200 * ms)
			if n := went.Load(); n != 10 {
				t.Errorf("fair %v, shared %v: %d of 10 went", fair, shared, n)
			}
			pass(20 * time.Minute)
		})
	}
}

// A waiting call is charged to a new limit too, and no longer to a removed one.
func TestWhoWaitsIsChargedToALimitThatComes(t *testing.T) {
	a, b := rate("a", 5, sec, 1), rate("b", 1, sec, 1)
	for i := range 4 {
		fair, shared := i&1 > 0, i&2 > 0
		synctest.Test(t, func(t *testing.T) {
			policy := func(l ...limit.Limit) weir.Policy {
				p := weir.Policy{Limits: l, MaxWait: time.Minute}
				if fair {
					p.Fair.By = "tenant"
				}
				return p
			}
			u := fleetOf(t, policy(a), shared)
			pass(3 * sec)
			went := acquires(u, 60)
			for _, of := range []struct {
				limits []limit.Limit
				want   int64
			}{{[]limit.Limit{a}, 25}, {[]limit.Limit{a, b}, 5}, {[]limit.Limit{a}, 25}} {
				set(t, u, policy(of.limits...))
				before := went.Load()
				pass(5 * sec)
				if n := went.Load() - before; n < of.want-1 || n > of.want+1 {
					t.Errorf("fair %v, shared %v: with %d limits %d went in 5s, want %d", fair, shared, len(of.limits), n, of.want)
				}
			}
			pass(time.Minute)
		})
	}
}

// acquires makes n calls of a, and counts the admitted ones.
func acquires(u *weir.Upstream, n int) *atomic.Int64 {
	went := new(atomic.Int64)
	for range n {
		go func() {
			if p, err := u.Acquire(background, weir.Call{Operation: "a"}); err == nil {
				went.Add(1)
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		}()
	}
	return went
}
