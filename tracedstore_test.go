package weir_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// A record contains the part of a wait that was spent on store requests, also for a decision by Try, which does not
// wait for a turn.
func TestARecordKnowsWhatTheStoreTook(t *testing.T) {
	for _, try := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := fleet.New(far{fleet.NewMemory(nil), 20 * ms}, fleet.Options{})
			f.Start()
			defer func() { _ = f.Close(context.Background()) }()
			var got []weir.Tried
			p := inTurn(rate("shared", 1000, sec, 100))
			p.MaxWait = 5 * sec
			u := open(t, p, weir.Options{Fleet: f, Events: weir.Events{Recorded: func(r *weir.Record) bool {
				got = append(got, r.Attempts()...)
				return false
			}}})
			pass(3 * sec)
			permit := new(weir.Permit)
			if try {
				if d := u.Try(weir.Call{}, permit); !d.Allowed {
					t.Fatal(d)
				}
			} else {
				var err error
				if permit, err = u.Acquire(t.Context(), weir.Call{}); err != nil {
					t.Fatal(err)
				}
			}
			permit.Report(outcome.Outcome{Class: outcome.OK})
			if len(got) != 1 || got[0].Asked < 20*ms || got[0].Asked > got[0].Waited || got[0].Rested != 0 {
				t.Errorf("try %v: got %+v, want that 20ms or more of the wait were the store's", try, got)
			}
		})
	}
}
