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
	"github.com/seed1158cd35/weir/retry"
)

// A spell is an upstream that fails every call until its end.
type spell struct {
	until    time.Time
	attempts atomic.Int64
	err      error
}

func away(d time.Duration, err error) *spell { return &spell{until: time.Now().Add(d), err: err} }

func (s *spell) call(context.Context) (int, error) {
	s.attempts.Add(1)
	if time.Now().Before(s.until) {
		return 0, s.err
	}
	return 1, nil
}

// patient returns the schedule of the AWS presets, without breaker and budget. Either would end the calls before so
// many attempts are due that some must be held back.
func patient() weir.Policy {
	p := unbounded()
	p.Retry, _ = retry.Schedule("aws-patient")
	return p
}

// This runs ten outages, because about one in 650 calls happens to make its last attempt before the upstream
// recovers.
func TestRetriesAreHeldBackWhileNothingSucceeds(t *testing.T) {
	var good atomic.Int64
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			var held, retried atomic.Int64
			u := open(t, patient(), weir.Options{Events: weir.Events{
				HeldBack: func(weir.HeldBack) { held.Add(1) }, Retried: func(weir.Retried) { retried.Add(1) },
			}})
			s := away(sec, errFailed)
			before := good.Load()
			var wg sync.WaitGroup
			for range 40 {
				wg.Go(func() {
					if _, err := weir.Do(background, u, weir.Call{Safe: true}, s.call); err == nil {
						good.Add(1)
					}
				})
			}
			wg.Wait()
			n := s.attempts.Load()
			if n > 40+40+10 {
				t.Errorf("%d attempts of 40 calls, want two each, and a few to find out", n)
			}
			if lost := before + 40 - good.Load(); held.Load() < 40 || retried.Load()+40 < n || retried.Load()+40 > n+lost {
				t.Errorf("%d held back, %d retries told of, %d attempts", held.Load(), retried.Load(), n)
			}
		})
	}
	if n := good.Load(); n < 394 {
		t.Errorf("%d of 400 calls good, want 394", n)
	}
}

func TestAnOutageGetsFewRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patient()
		p.Timeouts.Call = -1
		u, s := open(t, p, weir.Options{}), away(time.Hour, errFailed)
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				_, err := weir.Do(background, u, weir.Call{Safe: true}, s.call)
				g := gaveUp(t, err)
				if !errors.Is(err, retry.ErrAttempts) || g.Attempts+g.HeldBack != 8 || g.HeldBack > 0 && !strings.Contains(err.Error(), "more suppressed") {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := s.attempts.Load(); n > 40+20 {
			t.Errorf("%d attempts of 40 calls", n)
		}
	})
}

// broken returns an upstream at which ten calls have failed.
func broken(t *testing.T, p weir.Policy) *weir.Upstream {
	u, dead := open(t, p, weir.Options{}), away(time.Hour, errFailed)
	for range 10 {
		_, _ = weir.Do(background, u, weir.Call{}, dead.call)
	}
	return u
}

// hasty returns a policy with retries that are due before they are allowed.
func hasty() weir.Policy {
	p := guarded()
	p.Retry.Base = ms
	return p
}

func TestRetriesAreHeldBackUnlessTheUpstreamSaysWhenToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hints := answers(hinted(5*ms), hinted(5*ms), nil)
		if _, err := do(background, broken(t, hasty()), hints); err != nil || hints.n != 3 {
			t.Errorf("with hints: %d attempts, %v", hints.n, err)
		}
		u := broken(t, hasty())
		u.Breaker("").Reset(u.Now())
		a := answers(errFailed)
		if _, _ = do(background, u, a); a.n != 1 {
			t.Errorf("without: %d attempts, want 1", a.n)
		}
	})
}

// A probe that fails like all attempts before it ends, so that the next one can be sent. The upstream's advice
// applies as always.
func TestAProbeMakesOneAttemptWhileNothingSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := broken(t, hasty())
		halfOpen(u)
		a := answers(errFailed)
		if _, err := do(background, u, a); a.n != 1 || !errors.Is(err, retry.ErrProbe) || !strings.Contains(err.Error(), "no attempt succeeds yet") {
			t.Errorf("%d attempts, want 1: %v", a.n, err)
		}
		u = broken(t, hasty())
		halfOpen(u)
		hints := answers(hinted(5*ms), nil)
		if _, err := do(background, u, hints); err != nil || hints.n != 2 {
			t.Errorf("with a hint: %d attempts, %v", hints.n, err)
		}
		u = open(t, hasty(), weir.Options{})
		halfOpen(u)
		a = answers(errFailed, nil)
		if _, err := do(background, u, a); err != nil || a.n != 2 {
			t.Errorf("of an upstream that was not seen to fail: %d attempts, %v", a.n, err)
		}
	})
}

func TestAHeldRetryEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := patient()
		quota, _ := retry.QuotaSchedule("aws-patient")
		p.Quota, p.Timeouts.Call = &quota, 2*sec
		u, s := open(t, p, weir.Options{}), away(time.Hour, errFailed)
		start := time.Now()
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { _, _ = weir.Do(background, u, weir.Call{Safe: true}, s.call) })
		}
		wg.Wait()
		if d := time.Since(start); d > 2*sec {
			t.Errorf("took %v of 2s", d)
		}
		if left, made := u.Look(0).RetriesLeft, s.attempts.Load()-20; left != 500-5*made {
			t.Errorf("%d tokens left of 500 after %d retries: what was paid for and not made is kept", left, made)
		}
	})
}
