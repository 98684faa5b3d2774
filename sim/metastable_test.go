package sim_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/retry"
	"github.com/seed1158cd35/weir/sim"
)

// A server has a capacity of 300 calls per second, serves in order of arrival, also for callers that have left, gets
// 280, and stalls for 10 s. The calls of that time are a queue of 9 s, while callers wait for one. From then on the
// server works only for callers that have left, and every retry makes the queue longer.
const (
	offered    = 280
	stallFrom  = 30 * time.Second
	stallUntil = 40 * time.Second
	storyEnd   = 100 * time.Second
)

// An aftermath describes how a policy performed after the stall.
type aftermath struct {
	good    []float64 // share of the calls that began in each second
	perCall float64   // attempts, over the whole run
}

// recovered returns how long after the stall ten seconds with 99% good calls begin, measured to the end of the first.
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

// naive is the policy of many programs without weir: three attempts with full jitter, and no other protection. It is
// not part of the product, and serves for comparison.
var naive = weir.Policy{Budget: retry.BudgetConfig{Off: true}, Breaker: breaker.Config{Off: true}}

// unhurried is naive with a bound: at most as many calls are in flight as the server can serve while their callers
// wait.
var unhurried = weir.Policy{Budget: naive.Budget, Breaker: naive.Breaker, Concurrency: weir.Concurrency{Auto: true}}

func TestStandstill(t *testing.T) {
	raced.Skip(t, "it plays many long histories, and shorter tests run the same code")
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
