package cascade_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func TestFirstTierAnswers(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	r := w.answeredBy("primary")
	if r.Degraded || r.Confidence != 1 || r.Index != 0 || r.Above != nil {
		t.Errorf("got %+v", r)
	}
}

func TestFailureLeadsToTheNextTierWithinTheCall(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	slow := throttled(0)
	w.errs["primary"], w.errs["secondary"] = down, slow
	r := w.answeredBy("cached")
	if !r.Degraded || r.Confidence != 0.6 || r.Index != 2 {
		t.Errorf("got %+v", r)
	}
	want := []cascade.Attempt{
		{Tier: "primary", Why: cascade.Failed, Code: "503", Err: down},
		{Tier: "secondary", Why: cascade.Failed, Code: "429", Err: slow},
	}
	if fmt.Sprint(r.Above) != fmt.Sprint(want) {
		t.Errorf("above: got %v, want %v", r.Above, want)
	}
}

func TestOneFailureTakesTheTierFromNobodyElse(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	for range 10 {
		for range 2 {
			w.errs["primary"] = down
			w.answeredBy("secondary")
		}
		w.errs["primary"] = nil
		w.answeredBy("primary")
	}
	if v := w.phase("primary", cascade.Up); v.InARow != 0 || v.Failed != 20 || v.Answered != 10 {
		t.Errorf("got %+v", v)
	}
}

func TestThreeInARowCoolIt(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	r := w.answeredBy("secondary")
	if a := r.Above[0]; a.Why != cascade.IsCooling || a.Wait != time.Second || a.Code != "failures in a row" || a.Asked() {
		t.Errorf("got %+v", a)
	}
	if !r.Degraded || w.asked["primary"] != 3 {
		t.Errorf("got %+v after %d calls to the primary", r, w.asked["primary"])
	}
}

func TestHintsCoolAtOnceWithinBounds(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		err  error
		want time.Duration // 0: it does not cool
	}{
		{throttled(30 * time.Second), 30 * time.Second},
		{throttled(time.Second), time.Second},
		{throttled(999 * time.Millisecond), 0},
		{throttled(0), 0},
		{throttled(-time.Hour), 0},
		{throttled(3 * day), 15 * time.Minute},
		{throttled(1<<63 - 1), 15 * time.Minute},
		{&told{Class: outcome.Failed, Hint: outcome.Hint{Said: true, After: time.Minute}}, time.Minute},
		{usedUp(3 * day), 3 * day},
		{usedUp(1<<63 - 1), 31 * day},
		{usedUp(time.Millisecond), time.Second},
		{usedUp(0), 15 * time.Minute},
		{refused("circuit_open", 12*time.Second), 12 * time.Second},
		{refused("circuit_open", 0), time.Second},
		{refused("circuit_open", 1<<63-1), time.Minute},
		{refused("rate_limited", time.Hour), 0},
		{refused("quota_exhausted", time.Hour), 0},
		{&told{Class: outcome.Canceled, Code: "call timeout"}, 0},
		{cascade.ErrPass, 0},
		{fmt.Errorf("cache: %w", cascade.ErrNothing), 0},
	} {
		w := newWorld(t, cascade.Config{Tiers: five()})
		w.errs["primary"] = tt.err
		w.answeredBy("secondary")
		if v := w.view("primary"); v.For != tt.want || (v.Phase == cascade.Cooling) != (tt.want > 0) {
			t.Errorf("%v: cools for %v (%v), want %v", tt.err, v.For, v.Phase, tt.want)
		}
	}
}

func TestLaterHintsProlongTheCooling(t *testing.T) {
	c := cascade.Config{Tiers: five()}
	w := newWorld(t, c)
	hint := 10 * time.Second
	for i := range 3 {
		// Inside a call that began while the tier was up another one cools it.
		_, _ = cascade.Run(t.Context(), w.c, func(ctx context.Context, turn cascade.Turn) (string, error) {
			if turn.Index > 0 {
				return "", nil
			}
			if i == 0 {
				w.errs["primary"] = throttled(5 * time.Second)
				w.answeredBy("secondary")
			}
			return "", throttled(hint)
		})
		w.phase("primary", cascade.Cooling)
	}
	if v := w.view("primary"); v.For != hint {
		t.Errorf("cools for %v, want %v", v.For, hint)
	}
}

func TestShorterHintsDoNotShortenTheCooling(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	_, _ = cascade.Run(t.Context(), w.c, func(_ context.Context, turn cascade.Turn) (string, error) {
		if turn.Index > 0 {
			return "", nil
		}
		w.errs["primary"] = throttled(20 * time.Second)
		w.answeredBy("secondary")
		return "", throttled(5 * time.Second)
	})
	if v := w.view("primary"); v.For != 20*time.Second {
		t.Errorf("cools for %v, want 20s", v.For)
	}
}

func TestFailuresOfBeforeTheCoolingProlongNothing(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	_, _ = cascade.Run(t.Context(), w.c, func(ctx context.Context, turn cascade.Turn) (string, error) {
		if turn.Index == 0 {
			w.trip("primary")
			w.clock.pass(900 * time.Millisecond)
			return "", down
		}
		return "", nil
	})
	if v := w.view("primary"); v.For != 100*time.Millisecond {
		t.Errorf("cools for %v, want 100ms", v.For)
	}
}

func TestGaveUpErrorTellsOfTheLastAttemptAndTheBreaker(t *testing.T) {
	gaveUp := &retry.GaveUpError{Attempts: 3, Why: retry.ErrAttempts, Last: errors.New("429"),
		Outcome: outcome.Outcome{Class: outcome.Throttled, Code: "429", Hint: outcome.Hint{Said: true, After: 40 * time.Second}}}
	opened := &retry.GaveUpError{Attempts: 1, Why: refused("circuit_open", 25*time.Second), Last: errors.New("503"),
		Outcome: outcome.Outcome{Class: outcome.Failed, Code: "503"}}
	for _, tt := range []struct {
		err  error
		want time.Duration
	}{{gaveUp, 40 * time.Second}, {fmt.Errorf("wrapped: %w", gaveUp), 40 * time.Second}, {opened, 25 * time.Second}} {
		w := newWorld(t, cascade.Config{Tiers: five()})
		w.errs["primary"] = tt.err
		r := w.answeredBy("secondary")
		if v := w.view("primary"); v.For != tt.want || r.Above[0].Why != cascade.Failed {
			t.Errorf("%v: cools for %v, %v, want %v", tt.err, v.For, r.Above, tt.want)
		}
	}
}

func TestWhatTheCallerDidWrongEndsTheCascade(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.errs["primary"], w.errs["secondary"] = down, rejected
	for range 2 {
		r, err := w.run()
		if err != error(rejected) || r.Tier != "secondary" || r.Value != "secondary" || len(r.Above) != 1 {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	if w.asked["cached"] != 0 {
		t.Errorf("a tier below was asked")
	}
	w.phase("secondary", cascade.Up)
}

// A probe that the upstream rejects has shown that it is up.
func TestRejectedProbeIsASuccess(t *testing.T) {
	for _, err := range []error{rejected, cascade.ErrNothing} {
		w := newWorld(t, cascade.Config{Tiers: five()})
		w.trip("primary")
		w.clock.pass(time.Second)
		w.errs["primary"] = err
		_, _ = w.run()
		w.phase("primary", cascade.Ramping)
	}
}

func TestCallerWhoLeavesTheLastTier(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()[:1]})
	ctx, leave := context.WithCancel(t.Context())
	_, err := cascade.Run(ctx, w.c, func(context.Context, cascade.Turn) (string, error) {
		leave()
		return "", down
	})
	if err != context.Canceled {
		t.Errorf("got %v, want the end of the context", err)
	}
}

func TestCallerWhoLeavesEndsTheCascade(t *testing.T) {
	errGone := errors.New("gone")
	w := newWorld(t, cascade.Config{Tiers: five(), Failures: 1})
	ctx, leave := context.WithCancelCause(t.Context())
	r, err := cascade.Run(ctx, w.c, func(ctx context.Context, turn cascade.Turn) (string, error) {
		leave(errGone)
		<-ctx.Done()
		return "", ctx.Err()
	})
	if err != errGone || len(r.Above) != 1 {
		t.Errorf("got %+v, %v, want the cause", r, err)
	}
	w.phase("primary", cascade.Up)
	if _, err := cascade.Run(ctx, w.c, w.ask); err != errGone || len(w.asked) != 0 {
		t.Errorf("a caller who had left: %v, asked %v", err, w.asked)
	}
}

func TestConditions(t *testing.T) {
	tiers := five()
	tiers[0].When = func([]cascade.Attempt) bool { return false }
	tiers[2].When = func(above []cascade.Attempt) bool { return above[len(above)-1].Code == "quota" }
	w := newWorld(t, cascade.Config{Tiers: tiers})
	if r := w.answeredBy("secondary"); r.Degraded {
		t.Errorf("%+v: nothing better was meant for the call", r)
	}
	w.errs["secondary"] = down
	w.answeredBy("static")
	w.errs["secondary"] = usedUp(0)
	w.answeredBy("cached")
	if v := w.view("primary"); v.Empty != 3 || w.asked["primary"] != 0 {
		t.Errorf("got %+v", v)
	}
}

func TestNothingInACacheIsNoFault(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.errs["primary"], w.errs["secondary"] = cascade.ErrNothing, cascade.ErrPass
	for range 10 {
		if r := w.answeredBy("cached"); r.Degraded {
			t.Fatalf("%+v: nothing failed", r)
		}
	}
	w.phase("primary", cascade.Up)
}

func TestNoTierAnswers(t *testing.T) {
	tiers := five()[:3]
	w := newWorld(t, cascade.Config{Tiers: tiers})
	first := throttled(40 * time.Second)
	w.errs["primary"], w.errs["secondary"], w.errs["cached"] = first, refused("circuit_open", 7*time.Second), cascade.ErrNothing
	_, err := w.run()
	e, ok := errors.AsType[*cascade.NoAnswerError](err)
	if !ok || e.Wait != 7*time.Second || !errors.Is(err, first) || errors.Is(err, cascade.ErrNothing) {
		t.Fatalf("got %v", err)
	}
	if o := e.Outcome(); o.Class != outcome.Failed || o.Unsent || o.Hint.After != 7*time.Second {
		t.Errorf("got %+v", o)
	}
	want := "no tier answered: primary failed for 40s: told throttled 429; secondary refused for 7s: told canceled circuit_open; cached nothing"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	_, err = w.run()
	e, _ = errors.AsType[*cascade.NoAnswerError](err)
	if o := e.Outcome(); o.Class != outcome.Canceled || !o.Unsent || e.Wait != 7*time.Second {
		t.Errorf("nothing was sent: got %+v, wait %v", o, e.Wait)
	}
	if !strings.Contains(err.Error(), "primary cooling for 40s: the upstream asked for it") {
		t.Errorf("got %s", err)
	}
}

// A cascade may be a tier of another: what it passed must not be taken for the
// tier's own word.
func TestCascadeWithinACascade(t *testing.T) {
	inner := newWorld(t, cascade.Config{Tiers: five()[:2]})
	inner.errs["primary"], inner.errs["secondary"] = cascade.ErrPass, down
	w := newWorld(t, cascade.Config{Tiers: five()})
	r, err := cascade.Run(t.Context(), w.c, func(ctx context.Context, turn cascade.Turn) (string, error) {
		if turn.Index > 0 {
			return "", nil
		}
		_, err := inner.run()
		return "", err
	})
	if err != nil || r.Above[0].Why != cascade.Failed || r.Above[0].Code != "no_answer" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestPanicGivesTheProbeBack(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	w.clock.pass(time.Second)
	for _, end := range []func(){func() { panic("no") }, runtime.Goexit} {
		var wg sync.WaitGroup
		wg.Go(func() {
			defer func() { _ = recover() }()
			_, _ = cascade.Run(t.Context(), w.c, func(context.Context, cascade.Turn) (int, error) {
				end()
				return 0, nil
			})
		})
		wg.Wait()
	}
	w.errs["primary"] = nil
	w.answeredBy("primary")
	w.phase("primary", cascade.Ramping)
}

func TestStory(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary") // at 0s, for 1s
	w.clock.pass(time.Second)
	w.answeredBy("secondary") // the probe fails: 2s
	w.clock.pass(2 * time.Second)
	w.errs["primary"] = refused("rate_limited", time.Minute)
	w.answeredBy("secondary") // the probe cannot be made
	w.errs["primary"] = nil
	w.answeredBy("primary") // the probe succeeds
	w.answeredBy("primary") // and so does the first call of the ramp
	w.errs["primary"] = down
	for range 9 {
		w.answeredBy("secondary") // not asked
	}
	w.answeredBy("secondary") // the tenth fails: 4s
	w.clock.pass(4 * time.Second)
	w.errs["primary"] = nil
	w.answeredBy("primary")
	for range 3 { // each step is over after its time
		w.clock.pass(5 * time.Second)
		_, _ = w.run()
	}
	w.phase("primary", cascade.Up)
	w.trip("primary") // 1s again
	want := []string{
		"primary: up to cooling: failures in a row (503) 1s 0%",
		"primary: cooling to probing: cooled down 0s 0%",
		"primary: probing to cooling: probe failed (503) 2s 0%",
		"primary: cooling to probing: cooled down 0s 0%",
		"primary: probing to ramping: probe succeeded 0s 10%",
		"primary: ramping to cooling: failed while ramping (503) 4s 0%",
		"primary: cooling to probing: cooled down 0s 0%",
		"primary: probing to ramping: probe succeeded 0s 10%",
		"primary: ramping to ramping: step done 0s 25%",
		"primary: ramping to ramping: step done 0s 50%",
		"primary: ramping to up: step done 0s 100%",
		"primary: up to cooling: failures in a row (503) 1s 0%",
	}
	if !slices.Equal(w.heard, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(w.heard, "\n"), strings.Join(want, "\n"))
	}
}

// With nothing but successes the steps of the default ramp take 5 calls each at
// 10 and at 25 %, and 10 at 50 %.
func TestRampBySuccesses(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	w.clock.pass(time.Second)
	w.errs["primary"] = nil
	calls, before := 0, w.asked["primary"]
	for ; w.view("primary").Phase != cascade.Up; calls++ {
		if _, err := w.run(); err != nil || calls > 1000 {
			t.Fatal(err, calls)
		}
	}
	// the probe; 1, 11, ... 41; every fourth; every second
	if asked := w.asked["primary"] - before; calls != 1+41+20+20 || asked != 21 {
		t.Errorf("up after %d calls, %d of them to the primary", calls, asked)
	}
}

func TestCallsThatCameToNothingLeaveTheirPlaceInTheRamp(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	w.clock.pass(time.Second)
	w.errs["primary"] = nil
	w.answeredBy("primary")
	w.errs["primary"] = refused("rate_limited", time.Second)
	for range 5 {
		w.answeredBy("secondary")
	}
	w.errs["primary"] = nil
	w.answeredBy("primary")
	w.answeredBy("secondary")
}

func TestWithoutARampItIsUpAfterTheProbe(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five(), Ramp: []cascade.Step{}})
	w.trip("primary")
	w.clock.pass(time.Second)
	w.errs["primary"] = nil
	w.answeredBy("primary")
	w.phase("primary", cascade.Up)
}

// A tier that answers its probe and then hangs gets no more calls than its step
// allows while the first of them are under way.
func TestRampWaitsForCallsUnderWay(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	w.clock.pass(time.Second)
	w.errs["primary"] = nil
	w.answeredBy("primary")
	_, _ = cascade.Run(t.Context(), w.c, func(_ context.Context, turn cascade.Turn) (string, error) {
		if turn.Index > 0 {
			return "", nil
		}
		w.clock.pass(30 * time.Second)
		if v := w.phase("primary", cascade.Ramping); v.Share != 10 {
			t.Errorf("got %+v, want 10%%", v)
		}
		return "", down
	})
	w.phase("primary", cascade.Cooling)
}

// One that never comes back holds the ramp up no longer than a probe.
func TestLostCallsHoldTheRampUpForABoundedTime(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	w.clock.pass(time.Second)
	w.errs["primary"] = nil
	w.answeredBy("primary")
	_, _ = cascade.Run(t.Context(), w.c, func(_ context.Context, turn cascade.Turn) (string, error) {
		w.clock.pass(65*time.Second + 10*time.Second)
		w.phase("primary", cascade.Up)
		return "", nil
	})
}

func TestLostProbeIsReplacedAndCountsForNothing(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five(), Probe: 10 * time.Second, Deadline: 5 * time.Second})
	w.trip("primary")
	w.clock.pass(time.Second)
	_, _ = cascade.Run(t.Context(), w.c, func(_ context.Context, turn cascade.Turn) (string, error) {
		if turn.Index > 0 {
			return "", nil
		}
		if !turn.Probe {
			t.Error("the call does not know that it is a probe")
		}
		w.clock.pass(10*time.Second - 1)
		if r := w.answeredBy("secondary"); r.Above[0].Why != cascade.IsProbed || r.Above[0].Wait != 1 {
			t.Errorf("got %+v", r.Above)
		}
		w.clock.pass(1)
		w.answeredBy("secondary") // a second probe, which fails
		return "", nil
	})
	w.phase("primary", cascade.Cooling)
}

func TestSetKeepsWhatIsKnownByName(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	w.errs["primary"] = nil
	tiers := []cascade.TierConfig{{Name: "new"}, {Name: "primary", Confidence: 0.5}, {Name: "message", Instant: true}}
	if err := w.c.Set(cascade.Config{Tiers: tiers, Ramp: []cascade.Step{}}); err != nil {
		t.Fatal(err)
	}
	tiers[1].Name = "changed behind its back"
	w.errs["new"] = down
	r := w.answeredBy("message")
	if r.Above[1].Why != cascade.IsCooling {
		t.Errorf("got %+v", r.Above)
	}
	w.clock.pass(time.Second)
	if r := w.answeredBy("primary"); r.Confidence != 0.5 || r.Index != 1 {
		t.Errorf("got %+v", r)
	}
	if err := w.c.Set(cascade.Config{}); err == nil {
		t.Error("a cascade without tiers")
	}
	if got := w.c.Config(); len(got.Tiers) != 3 || got.Deadline != time.Minute {
		t.Errorf("got %+v", got)
	}
}

// A ramp that is made shorter while a tier is on it.
func TestSetShortensARampUnderWay(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	w.errs["primary"] = nil
	w.clock.pass(time.Second)
	w.answeredBy("primary")
	w.clock.pass(10 * time.Second)
	_, _ = w.run()
	if v := w.phase("primary", cascade.Ramping); v.Share != 50 {
		t.Fatalf("got %+v", v)
	}
	if err := w.c.Set(cascade.Config{Tiers: five(), Ramp: []cascade.Step{{Percent: 1, Successes: 1, For: time.Hour}}}); err != nil {
		t.Fatal(err)
	}
	w.phase("primary", cascade.Up)
	w.answeredBy("primary")
}

func TestByHand(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	if !w.c.Cool("primary", 0) || w.c.Cool("nobody", 1) || w.c.Cool("message", 1) || w.c.Reset("static") {
		t.Fatal("wrong tiers")
	}
	w.clock.pass(300 * 24 * time.Hour)
	w.answeredBy("secondary")
	if !w.c.Reset("primary") {
		t.Fatal("no primary")
	}
	w.answeredBy("primary")
	want := []string{"primary: up to cooling: by hand 8760h0m0s 0%", "primary: cooling to up: by hand 0s 100%"}
	if !slices.Equal(w.heard, want) {
		t.Errorf("got %q, want %q", w.heard, want)
	}
}

func TestListenerMayUseTheCascadeAndPanic(t *testing.T) {
	var c *cascade.Cascade
	told := 0
	c, err := cascade.New(cascade.Config{Tiers: five()}, cascade.Options{Changed: func(e cascade.Change) {
		told++
		if e.To == cascade.Cooling {
			c.Reset(e.Tier)
			_ = c.View()
		}
		panic("no")
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.Cool("primary", time.Hour)
	if v := c.View()[0]; v.Phase != cascade.Up || told != 2 {
		t.Errorf("got %+v after %d changes", v, told)
	}
}

// While a listener hangs the calls go on. It hears of the changes in order, of the
// first 256 of them.
func TestListenerThatHangsHoldsUpNobody(t *testing.T) {
	var heard []cascade.Change
	hanging, release := make(chan bool), make(chan bool)
	c, err := cascade.New(cascade.Config{Tiers: five()}, cascade.Options{Changed: func(e cascade.Change) {
		if heard = append(heard, e); len(heard) == 1 {
			hanging <- true
			<-release
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() { c.Cool("primary", time.Hour) })
	<-hanging
	for range 200 {
		c.Reset("primary")
		c.Cool("primary", time.Hour)
	}
	close(release)
	wg.Wait()
	if len(heard) != 1+256 {
		t.Errorf("heard of %d changes, want 257", len(heard))
	}
	for i, e := range heard {
		if want := []cascade.Phase{cascade.Cooling, cascade.Up}[i%2]; e.To != want || e.From == want {
			t.Fatalf("change %d is %+v", i, e)
		}
	}
}

func TestValidateSaysAllThatIsWrong(t *testing.T) {
	c := cascade.Config{
		Tiers:    []cascade.TierConfig{{Name: "a", Confidence: 1.5, Timeout: -1}, {Name: "a"}, {Timeout: 1, Instant: true}},
		Failures: -1, Probe: -1,
		Cool: cascade.Cool{First: 2 * time.Minute, Most: time.Minute, Hint: time.Second, Quota: time.Millisecond},
		Ramp: []cascade.Step{{Percent: 101}, {Percent: 50, Successes: 1, For: 1}},
	}
	want := `tier "a": confidence 1.5: must be between 0 and 1
tier "a": timeout -1ns: must not be negative
tier 2: name "a": is that of another tier
tier 3: name: must not be empty
tier "": timeout 1ns: an instant tier has none
failures -1: must not be negative
probe -1ns: must not be negative
cool most 1m0s: must not be under first 2m0s
cool hint 1s: must not be under first 2m0s
cool quota 1ms: must not be under hint 1s
ramp 1: percent 101: must be between 1 and 100
ramp 1: successes 0: must be at least 1
ramp 1: for 0s: must be above 0
ramp 2: percent 50: must not be under that of the step before, 101`
	if got := fmt.Sprint(c.Validate()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, err := cascade.New(c, cascade.Options{}); err == nil {
		t.Error("made all the same")
	}
	if err := (cascade.Config{Tiers: five()}).Validate(); err != nil {
		t.Error(err)
	}
}
