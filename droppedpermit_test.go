package weir_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// dropped acquires permits and drops them without a report.
//
//go:noinline
func dropped(t *testing.T, u *weir.Upstream, n int) {
	for range n {
		if _, err := u.Acquire(context.Background(), weir.Call{}); err != nil {
			t.Error(err)
		}
	}
}

// find waits until the garbage collector has found n permits.
func find(t *testing.T, u *weir.Upstream, n uint64) {
	t.Helper()
	for range 1000 {
		if runtime.GC(); flights(t, u).Lost >= n {
			return
		}
	}
	t.Fatalf("%d dropped permits were found, want %d", flights(t, u).Lost, n)
}

// A program that forgets to report permits does not lose a bound's slots permanently. The garbage collector finds the
// permits. Their slots become free half a minute later, or with the response to a later attempt.
func TestAPermitThatIsDroppedGivesItsSlotBack(t *testing.T) {
	for _, p := range []weir.Policy{bounded(3), with(steady(), func(p *weir.Policy) { p.Concurrency.Auto = true })} {
		synctest.Test(t, func(t *testing.T) {
			u := open(t, p, weir.Options{})
			kept, err := u.Acquire(t.Context(), weir.Call{})
			if err != nil {
				t.Fatal(err)
			}
			dropped(t, u, 2)
			find(t, u, 2)
			if f := flights(t, u); f.Lost != 2 || f.InFlight != 3 || f.Held != 2 {
				t.Errorf("dropped: %+v, want both held", f)
			}
			time.Sleep(31 * time.Second)
			next, d := try(u, weir.Call{})
			if f := flights(t, u); !d.Allowed || f.InFlight != 2 && f.Fixed || f.Held != 0 && f.Fixed {
				t.Errorf("after 31 s: %+v, %+v; want the one that is kept and the new one", d, f)
			}
			next.Report(outcome.Outcome{Class: outcome.OK})
			if f := flights(t, u); f.InFlight != 1 || f.Held != 0 {
				t.Errorf("after an answer: %+v, want the one that is kept", f)
			}
			kept.Report(outcome.Outcome{Class: outcome.OK})
			kept = nil // the garbage collector finds it: it counts for nothing
			dropped(t, u, 1)
			find(t, u, 3)
			for range 5 {
				runtime.GC()
			}
			if f := flights(t, u); f.InFlight != 1 || f.Lost != 3 {
				t.Errorf("one reported and one dropped: %+v, want one in flight and three lost", f)
			}
		})
	}
}

// A call that finds no slot immediately frees the slots of lost permits.
func TestLostSlotsAreGivenUpWithoutALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(1), weir.Options{})
		dropped(t, u, 1)
		for begin := time.Now(); ; {
			runtime.GC()
			if p, d := try(u, weir.Call{}); d.Allowed {
				p.Report(outcome.Outcome{Class: outcome.OK})
				return
			}
			if time.Sleep(time.Second); time.Since(begin) > time.Hour {
				t.Fatal("nobody goes any more")
			}
		}
	})
}
