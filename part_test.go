package weir

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

func upFor(t *testing.T, p Policy) *Upstream {
	t.Helper()
	u, err := New("up", p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func twoASecond() limit.Limit {
	return limit.Limit{Name: "each", Rate: bucket.Rate{Amount: 2, Per: time.Second, Burst: 2}}
}

func TestPartsAreChargedToLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upFor(t, Policy{Limits: []limit.Limit{twoASecond()}})
		var p Permit
		c := Call{Part: true, ID: "m"}
		for range 2 {
			if err := u.Admit(t.Context(), &c, &p, 0); err != nil {
				t.Fatal(err)
			}
			p.Report(outcome.Outcome{Class: outcome.OK})
		}
		begin := time.Now()
		err := u.Admit(t.Context(), &c, &p, 0)
		if r, ok := errors.AsType[*Refusal](err); !ok || r.Reason != RateLimited || r.Limit != "each" || time.Since(begin) != 0 {
			t.Errorf("the third without patience: %v after %v", err, time.Since(begin))
		}
		if err := u.Admit(t.Context(), &c, &p, time.Second); err != nil || time.Since(begin) != 500*time.Millisecond {
			t.Errorf("the third with patience: %v after %v", err, time.Since(begin))
		}
		p.Report(outcome.Outcome{Class: outcome.OK})
		ctx, cancel := context.WithTimeoutCause(t.Context(), 100*time.Millisecond, errors.New("left"))
		defer cancel()
		if err := u.Admit(ctx, &c, &p, time.Second); err == nil {
			t.Error("it was allowed after its caller had left")
		}
	})
}

// A part takes no slot, does not affect the learned bound, is no probe, and is not counted by a breaker.
func TestPartsSayNothingOfTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upFor(t, Policy{Concurrency: Concurrency{Limit: 1}, Breaker: breaker.Config{Consecutive: 2, FirstOpen: time.Second, Open: time.Second}})
		whole, err := u.Acquire(t.Context(), Call{})
		if err != nil {
			t.Fatal(err)
		}
		var p Permit
		c := Call{Part: true}
		ask := func() error {
			err := u.Admit(t.Context(), &c, &p, 0)
			if err == nil {
				p.Report(outcome.Outcome{Class: outcome.Failed})
			}
			return err
		}
		for range 5 {
			if err := ask(); err != nil {
				t.Fatalf("with the only slot taken, or after parts that failed: %v", err)
			}
		}
		whole.Report(outcome.Outcome{Class: outcome.Failed})
		if whole, err = u.Acquire(t.Context(), Call{}); err != nil {
			t.Fatal(err)
		}
		whole.Report(outcome.Outcome{Class: outcome.Failed})
		if r, ok := errors.AsType[*Refusal](ask()); !ok || r.Reason != CircuitOpen || r.RetryAfter <= 0 || r.RetryAfter > time.Second {
			t.Errorf("with the breaker open: %v", r)
		}
		<-time.After(2 * time.Second)
		if err := ask(); err != nil {
			t.Errorf("when the open time is over: %v", err)
		}
		if got := u.Breaker("").Look(u.clock.Now()); got.Phase != breaker.Open || got.Probe {
			t.Errorf("a part probed: %+v", got)
		}
		if whole, err = u.Acquire(t.Context(), Call{}); err != nil {
			t.Fatalf("the probe: %v", err)
		}
		whole.Report(outcome.Outcome{Class: outcome.OK})
	})
}

func TestPartsAllocateNothing(t *testing.T) {
	u := upFor(t, Policy{Limits: []limit.Limit{{Name: "each", Scope: "user", Rate: bucket.Rate{Amount: 1e9, Per: time.Second}}}})
	var p Permit
	c := Call{Part: true, ID: "m", Keys: map[string]string{"user": "a"}, Cost: map[string]int64{"bytes": 5}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if n := testing.AllocsPerRun(1000, func() {
		if err := u.Admit(ctx, &c, &p, time.Second); err != nil {
			t.Error(err)
		}
		p.Report(outcome.Outcome{Class: outcome.OK})
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
