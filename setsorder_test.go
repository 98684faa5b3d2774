package weir_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
)

// A some describes callers that repeat calls of an operation.
type some struct {
	operation string
	callers   int
	cost      int64 // in units "units"
}

// among runs callers in a fleet's processes, in turn, for a time after the start. It returns how many calls of each
// operation were admitted.
func among(t *testing.T, p weir.Policy, o fleet.Options, processes int, lasts time.Duration, all ...some) map[string]int {
	store := fleet.NewMemory(nil)
	var us []*weir.Upstream
	for range processes {
		us = append(us, join(t, store, p, o).Upstream)
	}
	time.Sleep(2 * sec)
	ctx, cancel := context.WithTimeout(background, lasts)
	defer cancel()
	var got tally
	var wg sync.WaitGroup
	n := 0
	for _, s := range all {
		for range s.callers {
			u := us[n%len(us)]
			n++
			c := weir.Call{Operation: s.operation, Cost: map[string]int64{"units": s.cost}}
			wg.Go(func() { insists(ctx, u, c, func() { got.add(s.operation, 1) }) })
		}
	}
	wg.Wait()
	return got.all()
}

func unitsOf(name string, amount, burst int64, operations ...string) limit.Limit {
	l := rate(name, amount, sec, burst)
	l.Unit, l.Operations = "units", operations
	return l
}

// An expensive call and cheap calls with different sets of limits share a limit in order of arrival: the units that
// come of the common limit go to the call that came first.
func TestCostlyCallsOfOtherLimitsGoAmongCheapOnes(t *testing.T) {
	for _, lease := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			a, b := unitsOf("a", 100, 100, "dear"), unitsOf("b", 20, 20, "cheap", "dear")
			p := with(steady(a, b), func(p *weir.Policy) { p.MaxWait = 30 * sec })
			n := among(t, p, fleet.Options{Lease: lease}, 1, 30*sec, some{"cheap", 6, 1}, some{"dear", 1, 10})
			// Six cheap calls come while an expensive one waits: 16 units together, and 620 in total.
			if all := n["cheap"] + 10*n["dear"]; n["dear"] < 34 || all < 570 || all > 620 {
				t.Errorf("lease %v: of 620 units %v were used, by %v", lease, all, n)
			}
		})
	}
}

// A call that waits for a limit that is used up for long does not delay calls that need only another limit.
func TestWhoWaitsForOneLimitLeavesTheOtherToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := unitsOf("a", 1, 1, "both"), unitsOf("b", 20, 20, "one", "both")
		a.Per = 10 * sec
		p := with(steady(a, b), func(p *weir.Policy) { p.MaxWait = 30 * sec })
		n := among(t, p, fleet.Options{}, 1, 30*sec, some{"one", 6, 1}, some{"both", 1, 1})
		if n["one"] < 570 || n["both"] < 3 {
			t.Errorf("of 620 units were used by %v", n)
		}
	})
}

// Calls that need two limits proceed among calls that need one of them, and both limits are used completely, whether
// both are shared or one is local.
func TestTwoKindsOfLimitsAreUsed(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, fair := range []string{"", "user"} {
		for _, lease := range []time.Duration{0, -1} {
			for _, local := range []bool{true, false} {
				synctest.Test(t, func(t *testing.T) {
					a, b := unitsOf("a", 10, 5, "x", "z"), unitsOf("b", 10, 5, "y", "z")
					a.Local = local
					p := with(steady(a, b), func(p *weir.Policy) { p.MaxWait, p.Fair.By = 30*sec, fair })
					n := among(t, p, fleet.Options{Lease: lease}, 1, 60*sec, some{"x", 6, 1}, some{"y", 6, 1}, some{"z", 6, 1})
					ofA, ofB := n["x"]+n["z"], n["y"]+n["z"]
					if min(n["x"], n["y"], n["z"]) < 150 || min(ofA, ofB) < 570 || max(ofA, ofB) > 605 {
						t.Errorf("fair by %q, lease %v, local %v: of 605 each %d and %d were used: %v", fair, lease, local, ofA, ofB, n)
					}
				})
			}
		}
	}
}
