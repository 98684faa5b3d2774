package weir_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// some are callers that come again and again for calls of an operation.
type some struct {
	operation string
	callers   int
	cost      int64 // in units "units"
}

// among has callers call processes of a fleet that share what is not local, each on the next one, for so long, after a start.
// It says how many calls of each operation went.
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

// A costly call whose set of limits is another than that of cheap ones has its turn among them: what comes of the limit that both
// need goes to the call that came first.
func TestCostlyCallsOfOtherLimitsGoAmongCheapOnes(t *testing.T) {
	for _, lease := range []time.Duration{0, -1} {
		synctest.Test(t, func(t *testing.T) {
			a, b := unitsOf("a", 100, 100, "dear"), unitsOf("b", 20, 20, "cheap", "dear")
			p := with(steady(a, b), func(p *weir.Policy) { p.MaxWait = 30 * sec })
			n := among(t, p, fleet.Options{Lease: lease}, 1, 30*sec, some{"cheap", 6, 1}, some{"dear", 1, 10})
			// Six cheap calls come while a dear one waits: 16 units for each of these, and 620 in all.
			if all := n["cheap"] + 10*n["dear"]; n["dear"] < 34 || all < 570 || all > 620 {
				t.Errorf("lease %v: of 620 units %v were used, by %v", lease, all, n)
			}
		})
	}
}

// A call that waits for a limit which is used up for long keeps no other limit from those that need that alone.
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

// Calls that need both of two limits go among those that need one of them each, and both limits are used, whether both are
// shared or one is this process's own.
func TestTwoKindsOfLimitsAreUsed(t *testing.T) {
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
