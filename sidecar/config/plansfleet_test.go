package config

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// The quotas of plans are one quota for all processes of a fleet. A user who has used it up, with or without the
// plan, at one or several processes, has nothing left at any process.
func TestQuotasOfPlansAreOneForAFleet(t *testing.T) {
	for _, unit := range []string{"requests", "tokens"} {
		t.Run(unit, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { fleetOfPlans(t, unit) })
		})
	}
}

func fleetOfPlans(t *testing.T, unit string) {
	text := fmt.Sprintf("callers:\n  limits: {global: off, user: off, user-day: {amount: 20, every: day, unit: %s, scope: user, plans: {premium: 3x, trial: 0.5}}}\nupstreams: {chat: {preset: openai}}\n", unit)
	f, err := Parse("weir.yaml", []byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := fleetOf(t, fleet.NewMemory(nil), f.Callers.Policy, 3)
	goes := func(user, plan string, at []int, most, want int) {
		t.Helper()
		n := 0
		for idle := 0; idle < 2 && n < most; idle++ { // the units that a process keeps for an outage go last, and to other processes
			for _, i := range at {
				for n < most {
					c := weir.Call{Keys: map[string]string{"user": user, "plan": plan}, Cost: map[string]int64{unit: 1}}
					p, err := all[i].Acquire(t.Context(), c)
					if err != nil {
						break
					}
					n, idle = n+1, -1
					p.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{unit: 1}})
				}
				time.Sleep(time.Second)
			}
		}
		if n != want {
			t.Errorf("processes %v: %d calls of %s with plan %q go, want %d", at, n, user, plan, want)
		}
	}
	everywhere := []int{0, 1, 2}
	goes("ann", "premium", []int{0}, 30, 30)
	goes("ann", "premium", []int{1, 2, 0}, 100, 30) // the first process has a part by now, and keeps some for an outage
	for _, plan := range []string{"premium", "", "trial", "unknown"} {
		goes("ann", plan, everywhere, 100, 0)
	}
	goes("bob", "", []int{2}, 15, 15)
	goes("bob", "", []int{0, 1}, 100, 5)
	goes("bob", "trial", everywhere, 100, 0)
	goes("bob", "premium", []int{0}, 25, 25)
	goes("bob", "premium", everywhere, 100, 15)
	goes("cid", "trial", []int{2}, 5, 5)
	goes("cid", "premium", []int{1}, 10, 10)
	goes("cid", "trial", everywhere, 100, 0)
	goes("cid", "", everywhere, 100, 5)
	goes("cid", "premium", everywhere, 100, 40)
}
