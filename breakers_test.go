package weir_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
)

// twoOperations returns a policy with the default breaker.
func twoOperations() weir.Policy {
	p := guarded()
	p.Operations = []weir.Operation{{Name: "put", Methods: []string{"PUT"}}, {Name: "get", Methods: []string{"GET"}}}
	return p
}

// breakDown makes n failing calls of an operation.
func breakDown(u *weir.Upstream, operation string, n int) {
	for range n {
		_, _ = weir.Do(background, u, weir.Call{Operation: operation}, answers(errFailed).call)
	}
}

// keys returns the keys of the breakers in a phase.
func keys(u *weir.Upstream, in breaker.Phase) (all []string) {
	for key, b := range u.Breakers() {
		if b.Look(u.Now()).Phase == in {
			all = append(all, key)
		}
	}
	slices.Sort(all)
	return all
}

func TestDeclaredOperationsHaveABreakerEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, twoOperations(), weir.Options{})
		if by := u.BreakersBy(); by != "operation" {
			t.Errorf("breakers by %q", by)
		}
		breakDown(u, "put", 20)
		for op, want := range map[string]bool{"put": false, "get": true, "": true, "what": true} {
			_, err := weir.Do(background, u, weir.Call{Operation: op}, answers(nil).call)
			if (err == nil) != want {
				t.Errorf("%q: %v", op, err)
			}
		}
		if got := keys(u, breaker.Open); !slices.Equal(got, []string{"put"}) {
			t.Errorf("open: %v", got)
		}
		breakDown(u, "nobody declared it", 20)
		if got := keys(u, breaker.Open); !slices.Equal(got, []string{"default", "put"}) {
			t.Errorf("open: %v", got)
		}
	})
}

func TestOneBreakerForAllWhereThatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := twoOperations()
		p.BreakerScope = weir.WholeUpstream
		u := open(t, p, weir.Options{})
		breakDown(u, "put", 20)
		if _, err := weir.Do(background, u, weir.Call{Operation: "get"}, answers(nil).call); refusal(t, err).Reason != weir.CircuitOpen {
			t.Error(err)
		}
		if by := u.BreakersBy(); by != "" || len(u.Look(0).Breakers) != 1 {
			t.Errorf("breakers by %q: %+v", by, u.Look(0).Breakers)
		}
	})
}

func TestOperationsThatAreOnlyNamedByLimitsShareABreaker(t *testing.T) {
	p := guarded()
	p.Undeclared = true
	p.Limits = append(p.Limits, rate("put", 1000, sec, 0))
	p.Limits[0].Operations = []string{"put"}
	u := open(t, p, weir.Options{})
	if u.Breaker("put") != u.Breaker("get") || u.BreakersBy() != "" {
		t.Error("breakers of their own")
	}
}

func TestBreakersOfOperationsAreWorkedByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, twoOperations(), weir.Options{})
		u.Breaker("get").ForceOpen(u.Now(), 0)
		for op, want := range map[string]bool{"put": true, "get": false, "": true} {
			if _, err := weir.Do(background, u, weir.Call{Operation: op}, answers(nil).call); (err == nil) != want {
				t.Errorf("%q: %v", op, err)
			}
		}
		u.Breaker("get").Reset(u.Now())
		if _, err := weir.Do(background, u, weir.Call{Operation: "get"}, answers(nil).call); err != nil {
			t.Error(err)
		}
		u.Breaker("none").ForceOpen(u.Now(), 0)
		if got := keys(u, breaker.Open); !slices.Equal(got, []string{"default"}) {
			t.Errorf("open: %v", got)
		}
	})
}

// A changed policy keeps the breakers of operations that it still has.
func TestBreakersOfOperationsOutliveAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := twoOperations()
		u := open(t, p, weir.Options{})
		breakDown(u, "put", 20)
		breakDown(u, "get", 20)
		p.Operations = []weir.Operation{p.Operations[0], {Name: "delete", Methods: []string{"DELETE"}}}
		p.Retry.Attempts = 5
		set(t, u, p)
		if got := slices.Sorted(maps.Keys(maps.Collect(u.Breakers()))); !slices.Equal(got, []string{"default", "delete", "put"}) {
			t.Errorf("breakers %v", got)
		}
		if got := keys(u, breaker.Open); !slices.Equal(got, []string{"put"}) {
			t.Errorf("open: %v", got)
		}
		p.Operations = nil
		set(t, u, p)
		if got := u.Look(0).Breakers; len(got) != 1 || got[0].Phase != breaker.Closed {
			t.Errorf("without operations: %+v", got)
		}
	})
}

// A breaker of an operation that opens in one process opens in the whole fleet. One call in the fleet probes, with
// all its attempts, and no other call proceeds. This does not depend on which process probes first.
func TestAFleetHasABreakerForEachOperation(t *testing.T) {
	for name, first := range map[string]int{"all at once": -1, "who opened it first": 0, "another first": 1} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { probedByOne(t, first) }) })
	}
}

// probedByOne opens a fleet's breaker by process 0, and calls it from all processes. If first is set, that process
// calls first.
func probedByOne(t *testing.T, first int) {
	all := joined(t, 3, twoOperations())
	pass(3 * sec)  // each process has reached the store
	for range 10 { // half of twenty calls: if all failed, a probe would end with its first attempt
		_, _ = weir.Do(background, all[0], weir.Call{Operation: "put"}, answers(nil).call)
		breakDown(all[0], "put", 1)
	}
	pass(2 * sec)
	for i, u := range all {
		if got := keys(u, breaker.Closed); !slices.Equal(got, []string{"default", "get"}) {
			t.Errorf("process %d: closed: %v", i, got)
		}
	}
	var mu sync.Mutex
	var inside, most, probes, attempts int
	var by []int // indexes of processes
	var wg sync.WaitGroup
	for i, u := range all {
		for range 10 {
			wg.Go(func() {
				if first >= 0 && i != first {
					pass(250 * ms)
				}
				for range 100 {
					n := 0
					_, err := weir.Do(background, u, weir.Call{Operation: "put", Safe: true}, func(context.Context) (int, error) {
						mu.Lock()
						defer mu.Unlock()
						if u.Breaker("put").Look(u.Now()).Phase != breaker.HalfOpen {
							return 1, nil
						}
						if attempts++; n == 0 {
							by = append(by, i)
							probes++
							inside++
							most = max(most, inside)
						}
						if n++; n < 3 {
							return 0, errFailed
						}
						inside--
						return 1, nil
					})
					if err != nil && n > 0 {
						t.Errorf("process %d: a probe ends after %d attempts: %v", i, n, err)
					}
					pass(100 * ms)
				}
			})
		}
	}
	wg.Wait()
	if most != 1 || probes != 2 || attempts != 6 {
		t.Errorf("%d probes of %d attempts, %d at once; want 2 of 6, one at a time", probes, attempts, most)
	}
	if first >= 0 && (len(by) == 0 || by[0] != first) {
		t.Errorf("probed by %v; want %d first", by, first)
	}
	for i, u := range all {
		if got := keys(u, breaker.Closed); len(got) != 3 {
			t.Errorf("process %d: closed: %v", i, got)
		}
	}
}
