package weir_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
)

// broke is an upstream whose budget for retries is spent.
func broke(t *testing.T, o weir.Options) *weir.Upstream {
	p := steady()
	p.Budget, p.Retry.Base = retry.BudgetConfig{Floor: 1e-6}, sec
	u := open(t, p, o)
	_, _ = weir.Do(background, u, weir.Call{Safe: true}, answers(errFailed).call)
	return u
}

func TestLongPollEndsAfterTheWaitOfTheRetryThatTheBudgetRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for polls, want := range map[bool]time.Duration{false: 0, true: sec} {
			u := broke(t, weir.Options{})
			for range 3 {
				a, begin := answers(errFailed), u.Now()
				_, err := weir.Do(background, u, weir.Call{Safe: true, Polls: polls}, a.call)
				g := gaveUp(t, err)
				if took := u.Now() - begin; a.n != 1 || g.Why != retry.ErrBudget || g.Last != errFailed || g.Wait != 0 || took != want {
					t.Errorf("polls %v: %d attempts in %v, want %v: %+v", polls, a.n, took, want, g)
				}
			}
		}
	})
}

func TestLongPollThatFailsForGoodEndsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := broke(t, weir.Options{})
		for _, err := range []error{nil, errRejected} {
			begin := u.Now()
			_, got := weir.Do(background, u, weir.Call{Safe: true, Polls: true}, answers(err).call)
			if took := u.Now() - begin; got != err || took != 0 {
				t.Errorf("%v after %v", got, took)
			}
		}
	})
}

func TestCallerOfALongPollMayLeaveWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, reason := broke(t, weir.Options{}), errors.New("left")
		ctx, cancel := context.WithCancelCause(background)
		time.AfterFunc(300*ms, func() { cancel(reason) })
		begin := u.Now()
		_, err := weir.Do(ctx, u, weir.Call{Safe: true, Polls: true}, answers(errFailed).call)
		if took := u.Now() - begin; took != 300*ms || !errors.Is(err, reason) {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestLongPollThatIsEndedWhileItWaitsIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := 0
		u := broke(t, weir.Options{Events: weir.Events{Done: func(weir.Done) { ended++ }}})
		ended = 0
		r := u.Begin(background, weir.Call{Safe: true, Polls: true})
		if !r.Next() {
			t.Fatal(r.Err())
		}
		r.Report(r.Classify(errFailed), errFailed)
		r.End()
		if r.Next() || ended != 1 || !errors.Is(r.Err(), retry.ErrBudget) {
			t.Errorf("ended %d times: %v", ended, r.Err())
		}
	})
}
