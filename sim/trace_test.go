package sim_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"strconv"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
	"github.com/seed1158cd35/weir/sim"
)

// A trace contains all events of a world, with their instants.
type trace struct {
	w     *sim.World
	hash  hash.Hash
	kinds map[string]int
}

func (tr *trace) note(kind string, e any) {
	tr.kinds[kind]++
	fmt.Fprintf(tr.hash, "%d %s %+v\n", tr.w.Now(), kind, e)
}

func (tr *trace) events() weir.Events {
	return weir.Events{
		Decided: func(e weir.Decided) {
			kind := "decided"
			if e.Refusal != nil {
				kind = "refused: " + string(e.Refusal.Reason)
				tr.note(kind, *e.Refusal)
				return
			}
			tr.note(kind, e)
		},
		Ended:   func(e weir.Ended) { tr.note("ended: "+e.Outcome.Class.String(), e) },
		Retried: func(e weir.Retried) { tr.note("retried", fmt.Sprint(e.Subject, e.Attempt, e.Outcome, e.Err, e.After)) },
		GaveUp:  func(e weir.GaveUp) { tr.note("gave up", fmt.Sprint(e.Subject, e.Attempts, e.Outcome, e.Why, e.Err)) },
		Done:    func(e weir.Done) { tr.note("done", e) },
		Breaker: func(e weir.BreakerEvent) { tr.note("breaker: "+e.To.String(), e) },
		Paused:  func(e weir.PauseEvent) { tr.note("paused", e) },
		Paced:   func(e weir.PaceEvent) { tr.note("paced", e) },
	}
}

// everything returns a policy that uses every feature.
func everything() weir.Policy {
	return weir.Policy{
		Limits: []limit.Limit{
			{Name: "all", Rate: bucket.Rate{Amount: 120, Per: time.Second, Burst: 30}, Adaptive: adaptive.Config{On: true}},
			{Name: "tenant", Scope: "tenant", Rate: bucket.Rate{Amount: 40, Per: time.Second, Burst: 5}},
			{Name: "slow", Operations: []string{"slow"}, Shape: limit.Rolling, Rate: bucket.Rate{Amount: 5, Per: 2 * time.Second}},
		},
		Breaker:  breaker.Config{Share: 0.4, Window: 2 * time.Second, Open: time.Second},
		Retry:    retry.Config{Attempts: 4},
		Timeouts: weir.Timeouts{Attempt: 500 * time.Millisecond, Call: 5 * time.Second},
		MaxWait:  2 * time.Second,
	}
}

// story lets 50 workers call an upstream that throttles, fails, and is down for a while, and returns the events.
func story(t *testing.T, seed uint64) *trace {
	w := sim.New(seed)
	defer w.Close()
	tr := &trace{w, sha256.New(), make(map[string]int)}
	api := w.Upstream(sim.Behaviour{
		Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 10}, Hint: true, Fails: 0.02,
		Latency: 20 * time.Millisecond, Jitter: 40 * time.Millisecond,
		Outages: []sim.Outage{{From: 3 * time.Second, Until: 5 * time.Second}, {From: 8 * time.Second, Until: 10 * time.Second, Stall: true}},
	})
	u, err := weir.New("api", everything(), weir.Options{Clock: w.Clock(), Rand: w.Rand(), Events: tr.events()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		call := weir.Call{Keys: map[string]string{"tenant": strconv.Itoa(i % 7)}, Safe: true, ID: strconv.Itoa(i)}
		if i%10 == 0 {
			call.Operation = "slow"
		}
		w.Go(func() {
			for w.Now() < 12*time.Second {
				n, err := impatiently(w, i%10 == 5, func(ctx context.Context) (int64, error) { return weir.Do(ctx, u, call, api.Call) })
				tr.note("answer", fmt.Sprint(i, n, err))
				sleep(w, time.Duration(w.Rand().Int64N(int64(500*time.Millisecond)+1)))
			}
		})
	}
	run(t, w)
	tr.note("upstream", api.Counts())
	return tr
}

// impatiently gives a call a deadline that it can hardly meet, if really is set.
func impatiently(w *sim.World, really bool, call func(context.Context) (int64, error)) (int64, error) {
	if !really {
		return call(background)
	}
	ctx, cancel := w.Clock().WithTimeout(background, time.Duration(w.Rand().IntN(100))*time.Millisecond, errLate)
	defer cancel()
	return call(ctx)
}

func TestHundredRunsOfOneSeedGiveOneTrace(t *testing.T) {
	raced.Skip(t, "it plays many long histories, and shorter tests run the same code")
	first := story(t, 1)
	want := fmt.Sprintf("%x", first.hash.Sum(nil))
	for i := range 99 {
		if got := fmt.Sprintf("%x", story(t, 1).hash.Sum(nil)); got != want {
			t.Fatalf("run %d has trace %s, the first %s", i+2, got, want)
		}
	}
	if got := fmt.Sprintf("%x", story(t, 2).hash.Sum(nil)); got == want {
		t.Error("another seed gives the same trace")
	}
	for _, kind := range []string{
		"decided", "refused: rate_limited", "refused: circuit_open", "retried", "gave up", "done", "answer",
		"ended: " + outcome.OK.String(), "ended: " + outcome.Throttled.String(), "ended: " + outcome.Failed.String(), "ended: " + outcome.Canceled.String(),
		"breaker: open", "breaker: half-open", "breaker: closed", "paused", "paced",
	} {
		if first.kinds[kind] == 0 {
			t.Errorf("nothing of the kind %q happened in %v", kind, first.kinds)
		}
	}
	t.Log(first.kinds)
}
