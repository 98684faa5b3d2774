package weir_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A patientGate admits no call, and waits.
type patientGate struct{}

func (patientGate) Admit(ctx context.Context, _ weir.Call) (func(outcome.Outcome), error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// A way is a way of waiting for a turn.
type way struct {
	name   string
	policy weir.Policy
	o      weir.Options
	fleet  bool
	begin  func(t *testing.T, u *weir.Upstream) // makes later calls wait
}

func waysOfWaiting() []way {
	slow := rate("all", 1, 10*sec, 1)
	takes := func(t *testing.T, u *weir.Upstream) {
		if _, err := u.Acquire(background, weir.Call{}); err != nil {
			t.Fatal(err)
		}
	}
	throttled := func(c weir.Call) func(*testing.T, *weir.Upstream) {
		return func(t *testing.T, u *weir.Upstream) {
			p, err := u.Acquire(background, c)
			if err != nil {
				t.Fatal(err)
			}
			p.Report(hinted(30 * sec).O)
		}
	}
	fair := func(p weir.Policy) weir.Policy { p.Fair.By = "user"; return p }
	two := func(p weir.Policy) weir.Policy { p.Limits = append(p.Limits, rate("more", 1, 20*sec, 1)); return p }
	shaped := func(s limit.Shape) weir.Policy {
		l := slow
		l.Shape, l.Rate.Burst = s, 0
		return steady(l)
	}
	return []way{
		{"a booked turn", steady(slow), weir.Options{}, false, takes},
		{"a booked turn of one limit of two", two(steady(slow)), weir.Options{}, false, takes},
		{"a rolling limit", shaped(limit.Rolling), weir.Options{}, false, takes},
		{"a limit that is paused", steady(rate("all", 100, sec, 100)), weir.Options{}, false, throttled(weir.Call{})},
		{"an operation that is paused", steady(), weir.Options{}, false, throttled(weir.Call{})},
		{"in line", fair(steady(slow)), weir.Options{}, false, takes},
		{"in two lines", fair(two(steady(slow))), weir.Options{}, false, takes},
		{"in line for a limit that is paused", fair(steady(rate("all", 100, sec, 100))), weir.Options{}, false, throttled(weir.Call{})},
		{"a shared limit", steady(slow), weir.Options{}, true, takes},
		{"two shared limits", two(steady(slow)), weir.Options{}, true, takes},
		{"a shared limit that is paused", steady(rate("all", 100, sec, 100)), weir.Options{}, true, throttled(weir.Call{})},
		{"in line for a shared limit", fair(steady(slow)), weir.Options{}, true, takes},
		{"a slot", with(steady(), func(p *weir.Policy) { p.Concurrency.Limit = 1 }), weir.Options{}, false, takes},
		{"a slot, and then a limit", with(steady(rate("all", 10, sec, 10)), func(p *weir.Policy) { p.Concurrency.Limit = 1 }), weir.Options{}, false, takes},
		{"a gate of the program's own", steady(), weir.Options{Gates: []weir.Gate{patientGate{}}}, false, nil},
	}
}

// Every waiting call notices immediately that its breaker has opened, and gets the time until the probe.
func TestEveryWaitHearsOfAnOpenBreaker(t *testing.T) {
	for _, w := range waysOfWaiting() {
		for _, scope := range []string{"", "tenant"} {
			t.Run(fmt.Sprintf("%s/scope=%s", w.name, scope), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { w.hears(t, scope) })
			})
		}
	}
}

func (w way) hears(t *testing.T, scope string) {
	p := w.policy
	p.Breaker, p.BreakerScope, p.MaxWait = breaker.Config{}, scope, time.Hour
	var u *weir.Upstream
	if w.fleet {
		u = joined(t, 1, p)[0]
	} else {
		u = open(t, p, w.o)
	}
	if w.begin != nil {
		w.begin(t, u)
	}
	start := clock.System.Now()
	ctx, leave := context.WithCancel(t.Context())
	var wg, others sync.WaitGroup
	for i := range 20 {
		call := func(tenant string) (*weir.Permit, error) {
			return u.Acquire(ctx, weir.Call{Keys: map[string]string{"tenant": tenant, "user": fmt.Sprint(i % 3)}})
		}
		wg.Go(func() {
			_, err := call("a")
			if r := refusal(t, err); r.Reason != weir.CircuitOpen || r.RetryAfter != time.Hour {
				t.Errorf("%v, want circuit_open for an hour", err)
			}
		})
		if scope != "" {
			others.Go(func() {
				if p, err := call("b"); err == nil {
					p.Report(ok)
				} else if err != context.Canceled {
					t.Errorf("another tenant: %v", err)
				}
			})
		}
	}
	pass(500 * ms) // within the longest wait for a slot
	if took := since(start); took != 500*ms {
		t.Fatalf("%v have passed", took)
	}
	u.Breaker("a").ForceOpen(u.Now(), time.Hour)
	if wg.Wait(); since(start) != 500*ms {
		t.Errorf("heard %v later, want at once", since(start)-500*ms)
	}
	leave()
	others.Wait()
}

// A breaker that opens ends the wait between attempts, whether the next attempt would come before the next probe or
// after it.
func TestAWaitBetweenAttemptsHearsOfAnOpenBreaker(t *testing.T) {
	for _, c := range []struct {
		open, want time.Duration
		calls      int
	}{{time.Hour, 2 * sec, 1}, {3 * sec, 2 * sec, 1}} {
		synctest.Test(t, func(t *testing.T) {
			p := steady()
			p.Breaker = breaker.Config{Failures: 5}
			p.Retry = retry.Config{Jitter: retry.NoJitter, Base: 10 * sec}
			u := open(t, p, weir.Options{})
			time.AfterFunc(2*sec, func() { u.Breaker("").ForceOpen(u.Now(), c.open) })
			start, a := clock.System.Now(), answers(errFailed, nil)
			_, err := do(background, u, a)
			if since(start) != c.want || a.n != c.calls {
				t.Errorf("open for %v: %v after %v and %d calls, want %v and %d", c.open, err, since(start), a.n, c.want, c.calls)
			}
			if c.calls == 1 && refusal(t, gaveUp(t, err).Why).Reason != weir.CircuitOpen {
				t.Errorf("gave up because of %v", gaveUp(t, err).Why)
			}
		})
	}
}

// A call that waits for the end of a pause proceeds immediately when it is lifted, not at its next check.
func TestEveryWaitHearsOfALift(t *testing.T) {
	plenty := func(s limit.Shape) limit.Limit {
		l := rate("all", 100, sec, 100)
		switch s {
		case limit.Rolling:
			l.Shape, l.Rate.Burst = s, 0
		case limit.Calendar:
			l = but(limit.Limit{Name: "all", Shape: s}, func(l *limit.Limit) { l.Amount, l.Every = 1000, bucket.Day })
		}
		return l
	}
	fair := func(p weir.Policy) weir.Policy { p.Fair.By = "user"; return p }
	two := func(p weir.Policy) weir.Policy { p.Limits = append(p.Limits, rate("more", 100, sec, 100)); return p }
	for _, w := range []way{
		{name: "without limits", policy: steady()},
		{name: "a booked turn", policy: steady(plenty(limit.Bucket))},
		{name: "of two limits", policy: two(steady(plenty(limit.Bucket)))},
		{name: "a rolling limit", policy: steady(plenty(limit.Rolling))},
		{name: "a quota", policy: steady(plenty(limit.Calendar))},
		{name: "in line", policy: fair(steady(plenty(limit.Bucket)))},
		{name: "in two lines", policy: fair(two(steady(plenty(limit.Bucket))))},
		{name: "in line for a quota", policy: fair(steady(plenty(limit.Calendar)))},
		{name: "a slot, too", policy: with(steady(plenty(limit.Bucket)), func(p *weir.Policy) { p.Concurrency.Limit = 100 })},
		{name: "a shared limit", policy: steady(plenty(limit.Bucket)), fleet: true},
		{name: "two shared limits", policy: two(steady(plenty(limit.Bucket))), fleet: true},
		{name: "a shared quota", policy: steady(plenty(limit.Calendar)), fleet: true},
		{name: "a shared rolling limit", policy: steady(plenty(limit.Rolling)), fleet: true},
		{name: "in line for a shared limit", policy: fair(steady(plenty(limit.Bucket))), fleet: true},
	} {
		for name, of := range map[string]pause.Subject{
			"all": pause.All(), "the operation": pause.OfOperation("default"), "the pool": pause.OfPool("p"), "the limit": pause.OfLimits("all"),
		} {
			if name == "the limit" && len(w.policy.Limits) == 0 {
				continue
			}
			late := 10 * ms
			if w.fleet && name == "the limit" { // a call that asks the store for others checks again at least this often
				late = 150 * ms
			}
			t.Run(w.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { w.lifted(t, of, late) })
			})
		}
	}
}

func (w way) lifted(t *testing.T, of pause.Subject, late time.Duration) {
	p := w.policy
	p.MaxWait = 2 * time.Hour
	var u *weir.Upstream
	if w.fleet {
		u = joined(t, 1, p)[0]
		pass(3 * sec)
	} else {
		u = open(t, p, weir.Options{})
	}
	if err := u.Pause(of, time.Hour, false); err != nil {
		t.Fatal(err)
	}
	start := clock.System.Now()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			p, err := u.Acquire(t.Context(), weir.Call{Pool: "p", Keys: map[string]string{"user": fmt.Sprint(i % 3)}})
			if err != nil {
				t.Error(err)
				return
			}
			if took := since(start); took < 1300*ms || took > 1300*ms+late {
				t.Errorf("went %v after the lift", took-1300*ms)
			}
			p.Report(ok)
		})
	}
	pass(1300 * ms) // not at the instant of a regular check
	if _, err := u.Resume(of, false); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// A call whose deadline passes while it waits was not sent: it is refused with a RetryAfter. If its turn cannot come
// in time, it is refused immediately.
func TestEveryWaitEndsWithARefusalAtTheDeadline(t *testing.T) {
	for _, w := range waysOfWaiting() {
		if len(w.o.Gates) > 0 {
			continue // a gate decides itself how it ends
		}
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := w.patient(t)
				pass(sec)
				refusedInTime(t, u, 500*ms)
			})
		})
	}
}

func refusedInTime(t *testing.T, u *weir.Upstream, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, patience)
	defer cancel()
	start := clock.System.Now()
	_, err := u.Acquire(ctx, weir.Call{Keys: map[string]string{"user": "a"}})
	if r := refusal(t, err); r.RetryAfter <= 0 || since(start) > patience {
		t.Errorf("%v after %v", err, since(start))
	}
}

// The same applies to a process that does not know its fleet's pauses yet because the store is slow.
func TestWhoWaitsForAStoreThatIsNewIsRefusedAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := join(t, &cut{Store: known(t), there: 5 * sec}, ofAll(), fleet.Options{}).Upstream
		refusedInTime(t, u, 100*ms)
	})
}
