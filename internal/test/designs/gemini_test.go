package designs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sim"
)

// Both forms of Gemini's free tier are available by name: the preset, with any window of a minute, and the design's bucket,
// which refills continuously. All other properties are the same.
func TestGeminiFreeIsHadBothWays(t *testing.T) {
	rolling, refill := preset(t, "gemini-free"), preset(t, "gemini-free-refill")
	want := func(p weir.Policy, shape limit.Shape, per time.Duration, bursts bool) {
		t.Helper()
		for i, w := range []limit.Limit{{Name: "rpm", Rate: bucket.Rate{Amount: 5}}, {Name: "tpm", Unit: "tokens", Rate: bucket.Rate{Amount: 250_000}}} {
			if w.Shape, w.Per = shape, per; bursts {
				w.Burst = w.Amount
			}
			if !reflect.DeepEqual(p.Limits[i], w) {
				t.Errorf("%+v, want %+v", p.Limits[i], w)
			}
		}
	}
	want(rolling, limit.Rolling, 61*time.Second, false)
	want(refill, limit.Bucket, time.Minute, true)
	if !reflect.DeepEqual(rolling.Limits[2:], refill.Limits[2:]) {
		t.Errorf("%v and %v", rolling.Limits, refill.Limits)
	}
	if rolling.Limits, refill.Limits = nil, nil; !reflect.DeepEqual(rolling, refill) {
		t.Errorf("%+v\n%+v", rolling, refill)
	}
}

// counted simulates ways in which an upstream may count five a minute. The function reports whether a call is admitted.
func counted(how string) func(now time.Duration) bool {
	var times []time.Duration
	window, at, tokens, last := 0, time.Duration(-1), 5.0, time.Duration(0)
	return func(now time.Duration) bool {
		switch how {
		case "any minute":
			for len(times) > 0 && times[0] <= now-time.Minute {
				times = times[1:]
			}
			if len(times) == 5 {
				return false
			}
			times = append(times, now)
			return true
		case "minutes of the clock":
			if m := now / time.Minute; m != at {
				at, window = m, 0
			}
			window++
			return window <= 5
		}
		tokens, last = min(5, tokens+(now-last).Minutes()*5), now
		if tokens < 1 {
			return false
		}
		tokens--
		return true
	}
}

// free is the result of a day's calls.
type free struct{ throttled, perMinute float64 } // share of sent calls in percent; good calls per minute

// playFree simulates the requests of a preset. Google counts their arrivals, 50 to 150 ms after the permits.
func playFree(t *testing.T, p weir.Policy, how, load string) free {
	w := sim.New(1)
	defer w.Close()
	u, err := weir.New("gemini", weir.Policy{Limits: p.Limits[:1], MaxWait: p.MaxWait, Undeclared: true}, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
	if err != nil {
		t.Fatal(err)
	}
	var sent, good int
	lets, ctx := counted(how), context.Background()
	call := func() {
		p, err := u.Acquire(ctx, weir.Call{})
		if err != nil {
			_ = w.Clock().Sleep(ctx, time.Second)
			return
		}
		sent++
		_ = w.Clock().Sleep(ctx, 50*time.Millisecond+time.Duration(w.Rand().Int64N(int64(100*time.Millisecond))))
		class := outcome.Throttled
		if lets(w.Now()) {
			class, good = outcome.OK, good+1
		}
		_ = w.Clock().Sleep(ctx, 50*time.Millisecond)
		p.Report(outcome.Outcome{Class: class})
	}
	if load == "always" {
		for range 5 {
			w.Go(func() {
				for w.Now() < 24*time.Hour {
					call()
				}
			})
		}
	} else { // four a minute on average, eight at a time
		w.Go(func() {
			for w.Now() < 24*time.Hour {
				_ = w.Clock().Sleep(ctx, time.Duration(-math.Log(1-w.Rand().Float64())*float64(2*time.Minute)))
				for range 8 {
					w.Go(call)
				}
			}
		})
	}
	if err := w.RunUntil(24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	return free{100 * float64(sent-good) / float64(sent), float64(good) / (24 * 60)}
}

// Throttled and good calls with Google's free tier: with both forms and with an exact window of a minute, for each way in which
// Google may count a minute, which is not documented. docs/adr/0017-five-designs.md has the figures.
func TestSimulationOfGeminiFree(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	page, err := os.ReadFile("../../../docs/adr/0017-five-designs.md")
	if err != nil {
		t.Fatal(err)
	}
	rolling, refill := preset(t, "gemini-free"), preset(t, "gemini-free-refill")
	exact := rolling
	exact.Limits = slices.Clone(rolling.Limits)
	exact.Limits[0].Per = time.Minute
	for _, load := range []string{"always", "eight at a time"} {
		for _, how := range []string{"any minute", "minutes of the clock", "proportional refill"} {
			r, e, f := playFree(t, rolling, how, load), playFree(t, exact, how, load), playFree(t, refill, how, load)
			if r.throttled > 0 {
				t.Errorf("%s, %s: %.2f%% are throttled under the preset", how, load, r.throttled)
			}
			row := fmt.Sprintf("| %s | %s | %.1f%% | %.1f%% | %.1f%% | %.2f | %.2f | %.2f |", how, load, r.throttled, e.throttled, f.throttled, r.perMinute, e.perMinute, f.perMinute)
			t.Log(row)
			if !strings.Contains(string(page), row) {
				t.Errorf("docs/adr/0017-five-designs.md does not have\n%s", row)
			}
		}
	}
}

// A call may cost all tokens of the preset. In a fleet, the bucket must then have been full for as long as a process may use
// tokens after their grant.
func TestFleetLetsCallOfAllTokensGo(t *testing.T) {
	t.Run("leased", func(t *testing.T) { fleetLetsCallOfAllTokensGo(t, 0, 4167) })
	t.Run("lease off", func(t *testing.T) { fleetLetsCallOfAllTokensGo(t, -1, 42) })
	t.Run("without a store", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { allTokensGo(t, nil, 0) })
	})
}

func fleetLetsCallOfAllTokensGo(t *testing.T, lease time.Duration, reserved int64) {
	synctest.Test(t, func(t *testing.T) {
		f := fleet.New(fleet.NewMemory(nil), fleet.Options{Lease: lease})
		f.Start()
		defer func() { _ = f.Close(context.Background()) }()
		allTokensGo(t, f, reserved)
	})
}

// allTokensGo takes all tokens several times. reserved is the part of them that is granted only to a single call.
func allTokensGo(t *testing.T, f *fleet.Fleet, reserved int64) {
	u, err := weir.New("gemini", preset(t, "gemini-free-refill"), weir.Options{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	begin := time.Now()
	// take takes tokens and checks that they are granted this long after the beginning.
	take := func(tokens int64, estimated bool, wait, due time.Duration) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		permit, err := u.Acquire(ctx, weir.Call{Cost: map[string]int64{"tokens": tokens}, Estimated: estimated})
		if err != nil {
			t.Fatalf("%d tokens after %v: %v", tokens, time.Since(begin), err)
		}
		permit.Report(outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": tokens}})
		if at := time.Since(begin); at < due-time.Millisecond || at > due+time.Second {
			t.Errorf("%d tokens granted after %v, want %v", tokens, at, due)
		}
	}
	accrue := func(tokens int64) time.Duration { return time.Duration(tokens) * time.Minute / 250_000 }
	take(250_000, false, time.Second, 0)
	take(1000, false, 5*time.Second, accrue(1000+reserved))
	due := accrue(1000+reserved) + accrue(250_000)
	time.Sleep(time.Until(begin.Add(due - 5*time.Second)))
	take(250_000, false, 9*time.Second, due)
	if _, err := u.Acquire(t.Context(), weir.Call{Cost: map[string]int64{"tokens": 250_001}}); !errors.Is(err, weir.ErrTooMuch) {
		t.Errorf("%v, want %v", err, weir.ErrTooMuch)
	}
	due += accrue(250_000)
	time.Sleep(time.Until(begin.Add(due)))
	take(300_000, true, time.Second, due) // an estimate waits for no more than what a full bucket grants
}
