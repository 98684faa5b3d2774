package weir_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/outcome"
)

// attempt begins a call and its first attempt.
func attempt(t *testing.T, u *weir.Upstream) *weir.Run {
	t.Helper()
	r := u.Begin(background, weir.Call{Safe: true})
	if !r.Next() {
		t.Fatal(r.Err())
	}
	return r
}

func TestASlotIsThereWhereThereIsABound(t *testing.T) {
	r := attempt(t, open(t, steady(), weir.Options{}))
	if r.Slot() != nil {
		t.Error("a slot without a bound")
	}
	r.End()
	u := open(t, bounded(1), weir.Options{})
	r = attempt(t, u)
	if s := r.Slot(); s == nil || s != r.Slot() {
		t.Errorf("%p and %p are the slots of one attempt", s, r.Slot())
	}
	r.Report(outcome.Outcome{Class: outcome.OK}, nil)
	if n := flights(t, u).InFlight; n != 0 {
		t.Errorf("%d in flight after the report", n)
	}
}

func TestASlotThatIsYieldedIsSomebodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(1), weir.Options{})
		r := attempt(t, u)
		free := r.Slot().Yield()
		if n := flights(t, u).InFlight; n != 1 {
			t.Errorf("%d in flight before the slot is freed", n)
		}
		free()
		other, d := try(u, weir.Call{})
		if !d.Allowed {
			t.Fatalf("the slot is not to be had: %+v", d)
		}
		r.Slot().Retake()
		if n := flights(t, u).InFlight; n != 2 {
			t.Errorf("%d in flight, want both", n)
		}
		r.Report(outcome.Outcome{Class: outcome.OK}, nil)
		other.Report(outcome.Outcome{Class: outcome.OK})
		if n := flights(t, u).InFlight; n != 0 {
			t.Errorf("%d in flight at the end", n)
		}
	})
}

func TestAnAttemptMayEndWithoutItsSlot(t *testing.T) {
	u := open(t, bounded(1), weir.Options{})
	r := attempt(t, u)
	r.Slot().Yield()()
	r.Slot().Yield()()
	r.Report(outcome.Outcome{Class: outcome.OK}, nil)
	if n := flights(t, u).InFlight; n != 0 {
		t.Errorf("%d in flight", n)
	}
}

// The slot of an attempt whose caller has left is kept until its response arrives, or the response to a later
// attempt.
func TestWhoeverLeavesKeepsTheSlot(t *testing.T) {
	left := outcome.Outcome{Class: outcome.Canceled}
	leaves := func(t *testing.T, u *weir.Upstream) (s *weir.Slot, ctx context.Context) {
		ctx, drop := context.WithCancel(background)
		r := attempt(t, u)
		if s = r.Slot(); !s.Leave(drop) {
			t.Fatal("nothing was answered that was sent later")
		}
		r.Report(left, context.Canceled)
		if f := flights(t, u); f.Held != 1 || ctx.Err() != nil {
			t.Fatalf("%d held, %v", f.Held, ctx.Err())
		}
		return s, ctx
	}
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(2), weir.Options{})
		s, ctx := leaves(t, u)
		s.Heard(ctx, outcome.OK)
		if f := flights(t, u); f.InFlight != 0 {
			t.Errorf("%d in flight after the answer was heard", f.InFlight)
		}

		_, ctx = leaves(t, u)
		pass(sec)
		r := attempt(t, u)
		r.Report(outcome.Outcome{Class: outcome.OK}, nil)
		if f := flights(t, u); f.InFlight != 0 || ctx.Err() == nil {
			t.Errorf("%d in flight after a later answer, %v", f.InFlight, ctx.Err())
		}

		_, ctx = leaves(t, u)
		pass(inflight.Held + sec)
		for range 2 {
			if _, d := try(u, weir.Call{}); !d.Allowed {
				t.Errorf("kept for ever: %+v", d)
			}
		}
		if ctx.Err() == nil {
			t.Error("the attempt goes on although its slot is somebody else's")
		}
	})
}

func TestALaterAnswerIsThereAlready(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(2), weir.Options{})
		first := attempt(t, u)
		pass(sec)
		second := attempt(t, u)
		pass(sec)
		second.Report(outcome.Outcome{Class: outcome.OK}, nil)
		if first.Slot().Leave(func() {}) {
			t.Error("the attempt goes on although nothing is to be heard of it")
		}
		first.End()
	})
}
