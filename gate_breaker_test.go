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

// These tests use the default breaker.

func phase(u *weir.Upstream) breaker.View { return u.Look(0).Breakers[0] }

// With a hundred calls per second, of which one in a hundred fails twice in a row, no call is lost.
func TestAnUpstreamThatErrsALittleIsNotShutOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, lost := open(t, weir.Policy{}, weir.Options{}), 0
		for i := range 60_000 {
			a := answers(nil)
			if i%100 == 0 {
				a = answers(errFailed, errFailed, nil)
			}
			if _, err := do(background, u, a); err != nil {
				lost++
			}
			pass(10 * ms)
		}
		if lost > 0 || phase(u).Failed > 0 {
			t.Errorf("%d of 60000 calls were lost, the breaker counts %d failed calls", lost, phase(u).Failed)
		}
	})
}

func TestASeriesOfAttemptsIsOneCall(t *testing.T) {
	for _, name := range retry.Schedules() {
		synctest.Test(t, func(t *testing.T) {
			c, _ := retry.Schedule(name)
			u := open(t, weir.Policy{Retry: c, Timeouts: weir.Timeouts{Call: -1}}, weir.Options{})
			a := answers(errFailed)
			_, err := do(background, u, a)
			if v := phase(u); a.n != c.Attempts || !errors.Is(err, retry.ErrAttempts) || v.Failed != 1 || v.InARow != 1 {
				t.Errorf("%s: %d attempts of %d, %d failed calls: %v", name, a.n, c.Attempts, v.InARow, err)
			}
		})
	}
}

func TestACallThatSucceedsInTheEndIsAGoodOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		p := u.Policy()
		p.Breaker = breaker.Config{}
		set(t, u, p)
		_, _ = do(background, u, answers(errFailed))
		if v := phase(u); v.InARow != 1 {
			t.Fatalf("%d failed calls in a row, want 1", v.InARow)
		}
		_, _ = do(background, u, answers(errFailed, errFailed, nil))
		if v := phase(u); v.InARow != 0 || v.Failed != 1 {
			t.Errorf("%d in a row and %d failed calls, want 0 and 1", v.InARow, v.Failed)
		}
	})
}

// guarded returns steady with the default breaker.
func guarded() weir.Policy {
	p := steady()
	p.Breaker = breaker.Config{}
	return p
}

// halfOpen brings u's breaker to the state in which the next call is the probe.
func halfOpen(u *weir.Upstream) {
	u.Breaker("").ForceOpen(u.Now(), sec)
	pass(sec)
}

func TestAProbeIsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, guarded(), weir.Options{})
		halfOpen(u)
		var others []error
		a := answers(errFailed, errFailed, nil)
		_, err := weir.Do(background, u, weir.Call{Safe: true}, func(ctx context.Context) (int, error) {
			_, err := do(background, u, answers(nil))
			others = append(others, err)
			return a.call(ctx)
		})
		if err != nil || a.n != 3 {
			t.Fatalf("the probe: %v after %d attempts", err, a.n)
		}
		for i, err := range others {
			if refusal(t, err).Reason != weir.CircuitOpen {
				t.Errorf("beside attempt %d of the probe: %v", i+1, err)
			}
		}
		if v := phase(u); v.Phase != breaker.HalfOpen || v.Good != 1 || v.Probe {
			t.Errorf("after a good probe: %+v", v)
		}
	})
}

func TestAProbeThatFailsForGoodOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, guarded(), weir.Options{})
		halfOpen(u)
		a := answers(errFailed)
		_, _ = do(background, u, a)
		if v := phase(u); a.n != 3 || v.Phase != breaker.Open || v.Why != breaker.ProbeFailed || v.Wait != sec {
			t.Errorf("%d attempts, %+v", a.n, v)
		}
	})
}

// However a probe ends between two attempts, its place is free, and the breaker counts the results of its attempts.
func TestAProbeThatEndsBetweenAttempts(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*weir.Policy)
		leaves bool
		want   breaker.Phase
	}{
		{"a limit refuses the second", func(p *weir.Policy) { p.Limits = append(p.Limits, rate("all", 1, time.Hour, 1)) }, false, breaker.Open},
		{"the budget is spent", func(p *weir.Policy) { p.Budget = retry.BudgetConfig{Floor: 1e-6, Share: 1e-6} }, false, breaker.Open},
		{"time is up", func(p *weir.Policy) { p.Timeouts.Call = 50 * ms }, false, breaker.Open},
		{"the caller leaves", nil, true, breaker.HalfOpen},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := guarded()
			if c.change != nil {
				c.change(&p)
			}
			u := open(t, p, weir.Options{})
			halfOpen(u)
			ctx, cancel := context.WithCancel(background)
			defer cancel()
			a := answers(errFailed)
			if c.leaves {
				time.AfterFunc(50*ms, cancel)
			}
			if _, err := do(ctx, u, a); err == nil || a.n != 1 {
				t.Fatalf("%s: %v after %d attempts", c.name, err, a.n)
			}
			if v := phase(u); v.Phase != c.want || v.Probe {
				t.Errorf("%s: %v, a probe is out: %v; want %v", c.name, v.Phase, v.Probe, c.want)
			}
		})
	}
}

// A lost probe frees its place. The call continues only if it becomes the probe again.
func TestALostProbeDoesNotGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := guarded()
		p.Retry.Base, p.Retry.Cap, p.Timeouts.Call, p.MaxWait = 40*sec, 40*sec, time.Hour, -1
		u := open(t, p, weir.Options{})
		halfOpen(u)
		a, done := answers(errFailed), make(chan error)
		go func() {
			_, err := do(background, u, a)
			done <- err
		}()
		pass(35 * sec) // the probe is lost after 30s
		_, err := weir.Do(background, u, weir.Call{}, func(context.Context) (int, error) {
			pass(10 * sec)
			return 1, nil
		})
		if err != nil {
			t.Errorf("the next probe: %v", err)
		}
		if err := <-done; a.n != 1 || refusal(t, gaveUp(t, err).Why).Reason != weir.CircuitOpen {
			t.Errorf("the lost probe made %d attempts: %v", a.n, err)
		}
		if v := phase(u); v.Phase != breaker.HalfOpen || v.Good != 1 {
			t.Errorf("%+v, want half-open with one good probe", v)
		}
	})
}

// A call's timeout may pass before the timeout of its attempt. The earlier attempts then decide, so that a stall
// counts with any timeouts.
func TestACallThatTimesOutAfterAFailedAttemptIsAFailedOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := guarded()
		p.Timeouts = weir.Timeouts{Attempt: 30 * sec, Call: 50 * sec}
		u := open(t, p, weir.Options{})
		stall := func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		if _, err := weir.Do(background, u, weir.Call{Safe: true}, stall); err == nil {
			t.Fatal("no error")
		}
		if v := phase(u); v.InARow != 1 {
			t.Errorf("a stall: %d failed calls, want 1", v.InARow)
		}
		p.Timeouts = weir.Timeouts{Attempt: 30 * sec, Call: 20 * sec}
		u = open(t, p, weir.Options{})
		if _, err := weir.Do(background, u, weir.Call{Safe: true}, stall); err == nil {
			t.Fatal("no error")
		}
		if v := phase(u); v.InARow != 0 {
			t.Errorf("an attempt without its time: %d failed calls, want 0", v.InARow)
		}
	})
}

func TestLeavingAndRefusalsCountNeitherWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := guarded()
		p.Limits = append(p.Limits, rate("all", 1, sec, 100))
		p.MaxWait = -1
		u := open(t, p, weir.Options{})
		for i := range 100 {
			ctx, cancel := context.WithTimeout(background, 50*ms) // the caller leaves before the second attempt
			err := errFailed
			if i%2 == 0 {
				err = errRejected
			}
			_, _ = weir.Do(context.WithoutCancel(ctx), u, weir.Call{}, answers(errRejected).call)
			left, leave := context.WithCancel(background)
			time.AfterFunc(50*ms, leave)
			_, _ = do(left, u, answers(err))
			_, _ = do(ctx, u, answers(nil, nil)) // refused at some time
			cancel()
			leave()
		}
		if v := phase(u); v.Phase != breaker.Closed || v.Failed != 0 || v.InARow != 0 {
			t.Errorf("%+v", v)
		}
	})
}

func TestAttemptsThatTheCallerRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, guarded(), weir.Options{})
		series := func(n int) {
			for i := range n {
				p, err := u.Acquire(background, weir.Call{})
				if err != nil {
					t.Fatalf("attempt %d: %v", i, err)
				}
				if i < n-1 {
					p.ReportAgain(errFailed.O)
				}
				p.Report(errFailed.O) // the first report counts
			}
		}
		for range 9 {
			series(6)
			pass(sec)
		}
		if v := phase(u); v.Phase != breaker.Closed || v.InARow != 9 {
			t.Errorf("%v with %d failed calls, want closed with 9", v.Phase, v.InARow)
		}
		series(1)
		if v := phase(u); v.Phase != breaker.Open {
			t.Errorf("%v after the tenth", v.Phase)
		}
	})
}

// It is unknown whether the rest of a call will come, so a probe is judged by its own result.
func TestAProbeThatTheCallerRepeatsIsJudgedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			o    outcome.Outcome
			want breaker.Phase
		}{{errFailed.O, breaker.Open}, {errThrottled.O, breaker.HalfOpen}, {outcome.Outcome{Class: outcome.OK}, breaker.HalfOpen}} {
			u := open(t, guarded(), weir.Options{})
			halfOpen(u)
			p, err := u.Acquire(background, weir.Call{})
			if err != nil {
				t.Fatal(err)
			}
			p.ReportAgain(c.o)
			if v := phase(u); v.Phase != c.want || v.Probe {
				t.Errorf("after %v: %v, a probe is out: %v; want %v", c.o.Class, v.Phase, v.Probe, c.want)
			}
		}
	})
}

func TestAPanicGivesTheProbesPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, guarded(), weir.Options{})
		halfOpen(u)
		n := 0
		func() {
			defer func() { _ = recover() }()
			_, _ = weir.Do(background, u, weir.Call{Safe: true}, func(context.Context) (int, error) {
				if n++; n == 2 {
					panic("in the second attempt")
				}
				return 0, errFailed
			})
		}()
		if v := phase(u); n != 2 || v.Probe || v.Phase != breaker.HalfOpen {
			t.Errorf("%d attempts, %+v", n, v)
		}
	})
}
