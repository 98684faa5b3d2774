package config

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// A limit by two scopes has one counter for each combination of values in the whole fleet. Values that look like other
// keys are still separate.
func TestPairsAreCountedOnceInFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := Parse("weir.yaml", []byte(`
callers:
  keys: {run: "header:X-Agent-Run", tool: "header:Mcp-Name"}
  limits: {global: off, user: off, user-day: off, pair: {amount: 20, every: day, scope: [tool, run]}}
upstreams: {a: {url: "https://a", callers: true}, b: {url: "https://b", callers: true}}
`), nil)
		if err != nil {
			t.Fatal(err)
		}
		all := fleetOf(t, fleet.NewMemory(nil), f.Callers.Policy, 3)
		pairs := [][2]string{{"r1", "search"}, {"r1", "fetch"}, {"r2", "search"}, {"", "search"}, {"r1, tool=search", ""}, {"r1", "search, tool="}, {"a, tool=b", "c"}, {"a", "b, tool=c"}, {`"r1"`, "search"}, {"\xff", "search"}, {"\ufffd", "search"}}
		taken := make(map[[2]string]int)
		for idle := 0; idle < 3; idle++ { // the units that a process keeps for an outage go last, and to other processes
			for i := range 3 * 20 * len(pairs) {
				pair := pairs[i/3%len(pairs)]
				p, err := all[i%3].Acquire(t.Context(), weir.Call{Keys: map[string]string{"run": pair[0], "tool": pair[1]}})
				if err != nil {
					continue
				}
				taken[pair]++
				idle = 0
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
			time.Sleep(time.Second)
		}
		for _, pair := range pairs {
			if taken[pair] != 20 {
				t.Errorf("%q: %d calls go, want 20", pair, taken[pair])
			}
		}
	})
}
