package weir_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A process of a fleet reports a key that it has not used as unknown, not as full. For a known key it reports the age
// of the data.
func TestAKeyOfAFleetIsUnknownUntilTheStoreHasSpoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := joined(t, 2, weir.Policy{Limits: []limit.Limit{
			{Name: "hourly", Scope: "user", Rate: bucket.Rate{Amount: 100, Per: time.Hour, Burst: 100}},
			{Name: "gold", Scope: "user", If: limit.Match{Scope: "plan", In: []string{"gold"}}, Rate: bucket.Rate{Amount: 100, Per: time.Hour, Burst: 100}},
		}})
		keys := map[string]string{"user": "alice"}
		for range 40 {
			p, err := all[0].Acquire(context.Background(), weir.Call{Keys: keys})
			if err != nil {
				t.Fatal(err)
			}
			p.Report(outcome.Outcome{Class: outcome.OK})
		}
		time.Sleep(30 * time.Second)
		met := all[0].LookAt(map[string]string{"user": "alice", "plan": "free"})
		if len(met) != 1 || met[0].Unknown || met[0].Level.Left > 61 || met[0].Level.Age < 20*time.Second {
			t.Errorf("the process that has called: %+v, want about 60 left, as of 30 s ago", met)
		}
		for range 2 { // reading does not change that
			not := all[1].LookAt(keys)
			if len(not) != 2 || !not[0].Unknown || not[0].Level.Left != 0 {
				t.Errorf("the process that has not called: %+v, want unknown", not)
			}
		}
	})
}
