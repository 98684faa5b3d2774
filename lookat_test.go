package weir_test

import (
	"context"
	"slices"
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

// With some of the scopes of a limit, LookWithin returns the known keys that have the given values, those with the least
// remaining first. LookAt returns them only if all scopes are given.
func TestLookWithinReturnsKeysWithGivenValues(t *testing.T) {
	u, err := weir.New("api", weir.Policy{Limits: []limit.Limit{
		{Name: "pair", Scope: "run, tool", Rate: bucket.Rate{Amount: 100, Per: time.Hour, Burst: 100}},
		{Name: "run", Scope: "run", Rate: bucket.Rate{Amount: 100, Per: time.Hour, Burst: 100}},
	}}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, keys := range []map[string]string{
		{"run": "r1", "tool": "a"}, {"run": "r1", "tool": "b, c"}, {"run": "r2", "tool": "a"}, {"run": "r1, tool=a", "tool": "a"}, {"run": "r1", "tool": "c"},
	} {
		for range i + 1 {
			p, err := u.Acquire(context.Background(), weir.Call{Keys: keys})
			if err != nil {
				t.Fatal(err)
			}
			p.Report(outcome.Outcome{Class: outcome.OK})
		}
	}
	for _, c := range []struct {
		keys map[string]string
		most int
		want []string
	}{
		{map[string]string{"run": "r1"}, 100, []string{"run=r1, tool=c", `run=r1, tool="b, c"`, "run=r1, tool=a"}},
		{map[string]string{"run": "r1"}, 1, []string{"run=r1, tool=c"}},
		{map[string]string{"tool": "a"}, 100, []string{`run="r1, tool=a", tool=a`, "run=r2, tool=a", "run=r1, tool=a"}},
		{map[string]string{"run": "r1", "tool": "a"}, 100, nil},
		{map[string]string{"run": "r9"}, 100, nil},
		{map[string]string{"user": "r1"}, 100, nil},
	} {
		var got []string
		for _, v := range u.LookWithin(c.keys, c.most) {
			got = append(got, v.Key)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.keys, got, c.want)
		}
	}
}
