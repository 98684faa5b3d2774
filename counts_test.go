package weir_test

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// figures returns all counts by name.
func figures(c *weir.Counts) map[string]uint64 {
	all := make(map[string]uint64)
	for n := range c.All() {
		if n.N > 0 {
			all[fmt.Sprintln(n.What, n.Operation, n.Limit, n.Word)] += n.N
		}
	}
	return all
}

// 64 goroutines decide, are refused and report, while the policy is changed repeatedly and a reader reads: no count
// is lost or decreases.
func TestCountsAreExactWhilePoliciesChangeAndSomebodyReads(t *testing.T) {
	var counts *weir.Counts
	policy := weir.Policy{
		Operations: []weir.Operation{{Name: "put"}, {Name: "list"}}, Breaker: breaker.Config{Off: true}, MaxWait: -1,
		Limits: []limit.Limit{rate("all", 3000, sec, 0), rate("other", 1000, sec, 0)},
	}
	u := open(t, policy, weir.Options{Events: weir.Events{Counts: func(c *weir.Counts) { counts = c }}})
	const callers, each = 64, 300
	var allowed, refused [callers]uint64
	var calling, beside sync.WaitGroup
	for i := range callers {
		calling.Go(func() {
			for j := range each {
				var p weir.Permit
				if u.Try(weir.Call{Operation: []string{"put", "list", "nobody's"}[j%3]}, &p).Allowed {
					allowed[i]++
					p.Report(outcome.Outcome{Class: outcome.Classes[j%len(outcome.Classes)]})
				} else {
					refused[i]++
				}
			}
		})
	}
	end := make(chan struct{})
	beside.Go(func() {
		for n := int64(0); ; n++ {
			select {
			case <-end:
				return
			default:
			}
			policy.Limits[0].Amount = 3000 + n%5
			if err := u.Set(policy); err != nil {
				t.Error(err)
			}
		}
	})
	beside.Go(func() {
		last := figures(counts)
		for {
			next := figures(counts)
			for name, n := range last {
				if next[name] < n {
					t.Errorf("%s went back from %d to %d", name, n, next[name])
				}
			}
			last = next
			select {
			case <-end:
				return
			default:
			}
		}
	})
	calling.Wait()
	close(end)
	beside.Wait()

	var want, got [3]uint64 // allowed, refused, ended
	for i := range callers {
		want[0], want[1], want[2] = want[0]+allowed[i], want[1]+refused[i], want[2]+allowed[i]
	}
	for n := range counts.All() {
		switch {
		case n.What == weir.Attempts:
			got[2] += n.N
		case n.What == weir.Decisions && n.Word == weir.DecidedAllowed:
			got[0] += n.N
		case n.What == weir.Decisions:
			got[1] += n.N
		}
	}
	if got != want || want[0] == 0 || want[1] == 0 {
		t.Errorf("counted %v allowed, refused and ended, want %v", got, want)
	}
}

func TestWhatIsCountedAllocatesNothing(t *testing.T) {
	u := open(t, steady(rate("all", 1<<30, sec, 0)), weir.Options{Events: weir.Events{Counts: func(*weir.Counts) {}, Refused: func(weir.Refused) time.Duration { return 0 }}})
	var p weir.Permit
	if n := testing.AllocsPerRun(1000, func() {
		u.Try(weir.Call{}, &p)
		p.Report(outcome.Outcome{Class: outcome.OK})
	}); n != 0 {
		t.Errorf("%v allocations for a call that goes well, want none", n)
	}
	u = open(t, weir.Policy{MaxWait: -1, Limits: []limit.Limit{rate("all", 1, 1000*sec, 0)}}, weir.Options{Events: weir.Events{Counts: func(*weir.Counts) {}, Refused: func(weir.Refused) time.Duration { return 0 }}})
	keys := map[string]string{"tenant": "a"}
	u.Try(weir.Call{}, &p)
	if n := testing.AllocsPerRun(1000, func() { u.Try(weir.Call{Keys: keys}, &p) }); n != 0 {
		t.Errorf("%v allocations for a refusal, want none", n)
	}
}

// Counts continue if a limit or an operation is removed and added again.
func TestCountsOutliveThePolicy(t *testing.T) {
	var counts *weir.Counts
	with, without := steady(rate("all", 1<<30, sec, 0)), steady()
	with.Operations = []weir.Operation{{Name: "put"}}
	u := open(t, with, weir.Options{Events: weir.Events{Counts: func(c *weir.Counts) { counts = c }}})
	for i := range 6 {
		if err := u.Set([]weir.Policy{with, without}[i%2]); err != nil {
			t.Fatal(err)
		}
		var p weir.Permit
		u.Try(weir.Call{Operation: "put"}, &p)
		p.Report(outcome.Outcome{Class: outcome.OK})
	}
	want := map[string]uint64{
		fmt.Sprintln(weir.Decisions, "put", "", weir.DecidedAllowed): 3, fmt.Sprintln(weir.Decisions, weir.DefaultOperation, "", weir.DecidedAllowed): 3,
		fmt.Sprintln(weir.Attempts, "put", "", "ok"): 3, fmt.Sprintln(weir.Attempts, weir.DefaultOperation, "", "ok"): 3,
	}
	if got := figures(counts); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}
