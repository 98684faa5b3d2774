package sim_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/retry"
	"github.com/seed1158cd35/weir/sim"
)

// A server that does 300 calls a second, in the order in which they come and even
// for callers who have left, is offered 280 and stands still for 10 s. What comes
// meanwhile is a queue of 9 s, and callers wait for one: from then on the server
// works for nobody, and every retry makes the queue longer.
const (
	offered    = 280
	stallFrom  = 30 * time.Second
	stallUntil = 40 * time.Second
	storyEnd   = 100 * time.Second
)

// An aftermath is how a policy came through the stall.
type aftermath struct {
	good    []float64 // share of the calls that began in each second
	perCall float64   // attempts, over the whole story
}

// recovered is how long after the stall the first second ends that is 99% good,
// as are the nine that follow it.
func (a aftermath) recovered() (time.Duration, bool) {
	for s := int(stallUntil / time.Second); s+10 <= len(a.good); s++ {
		if good(a.good[s : s+10]) {
			return time.Duration(s+1)*time.Second - stallUntil, true
		}
	}
	return 0, false
}

func good(shares []float64) bool {
	for _, share := range shares {
		if share < 0.99 {
			return false
		}
	}
	return true
}

func standstill(t *testing.T, seed uint64, p weir.Policy) aftermath {
	w := sim.New(seed)
	defer w.Close()
	api := w.Upstream(sim.Behaviour{
		Work: time.Second / 300, Latency: 10 * time.Millisecond,
		Outages: []sim.Outage{{From: stallFrom, Until: stallUntil, Stall: true}},
	})
	p.Timeouts.Attempt = time.Second
	u, err := weir.New("api", p, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
	if err != nil {
		t.Fatal(err)
	}
	seconds := int(storyEnd / time.Second)
	ok, all := make([]float64, seconds), make([]float64, seconds)
	w.Go(func() {
		for w.Now() < storyEnd {
			second := int(w.Now() / time.Second)
			all[second]++
			w.Go(func() {
				if _, err := weir.Do(background, u, weir.Call{Safe: true}, api.Call); err == nil {
					ok[second]++
				}
			})
			sleep(w, time.Duration(w.Rand().ExpFloat64()/offered*float64(time.Second))+1)
		}
	})
	run(t, w)
	var a aftermath
	total := 0.0
	for s := range all {
		a.good = append(a.good, ok[s]/all[s])
		total += all[s]
	}
	a.perCall = float64(api.Counts().Calls) / total
	return a
}

// naive is what many a program does without weir: three attempts with full jitter, and nothing
// that would stop it. It ships nowhere, and is what the other worlds are compared with.
var naive = weir.Policy{Budget: retry.BudgetConfig{Off: true}, Breaker: breaker.Config{Off: true}}

// unhurried is naive but for the bound: what is in flight is no more than the server can
// do while its callers wait.
var unhurried = weir.Policy{Budget: naive.Budget, Breaker: naive.Breaker, Concurrency: weir.Concurrency{Auto: true}}

func TestStandstill(t *testing.T) {
	for _, c := range []struct {
		name       string
		p          weir.Policy
		recovers   time.Duration // at the latest; 0 means never
		mostPerCal float64
	}{
		{"naive: 3 attempts, full jitter", naive, 0, 3},
		{"defaults but no breaker", weir.Policy{Breaker: breaker.Config{Off: true}}, 0, 1.1},
		{"defaults", weir.Policy{}, 12 * time.Second, 1.1},
		{"defaults of a sidecar", weir.Policy{Concurrency: weir.Concurrency{Auto: true}}, 4 * time.Second, 1.1},
		{"naive, but with a bound of what is in flight", unhurried, 2 * time.Second, 1.1},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(3) {
				a := standstill(t, seed, c.p)
				after, ok := a.recovered()
				t.Logf("seed %d: good again %v after the stall (%v), %.3f attempts per call", seed, after, ok, a.perCall)
				if ok != (c.recovers > 0) || after > c.recovers || a.perCall > c.mostPerCal {
					t.Errorf("want %v, at most %v attempts per call; seconds: %.2f", c.recovers, c.mostPerCal, a.good)
				}
			}
		})
	}
}
