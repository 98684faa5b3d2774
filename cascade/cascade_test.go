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

	"github.com/seed1158cd35/weir/breaker"
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
	if v := w.phase("primary", breaker.Closed); v.InARow != 0 || v.Failed != 20 || v.Answered != 10 {
		t.Errorf("got %+v", v)
	}
}

func TestThreeInARowOpenIt(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	r := w.answeredBy("secondary")
	if a := r.Above[0]; a.Why != cascade.IsOpen || a.Wait != time.Second || a.Code != "failures in a row" || a.Asked() {
		t.Errorf("got %+v", a)
	}
	if !r.Degraded || w.asked["primary"] != 3 {
		t.Errorf("got %+v after %d calls to the primary", r, w.asked["primary"])
	}
}

func TestHintsOpenAtOnceWithinBounds(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		err  error
		want time.Duration // 0: stays closed
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
		{refused("circuit_open", 12*time.Second), 0}, // its own breaker knows the time
		{refused("rate_limited", time.Hour), 0},
		{refused("quota_exhausted", time.Hour), 0},
		{&told{Class: outcome.Canceled, Code: "call timeout"}, 0},
		{cascade.ErrPass, 0},
		{fmt.Errorf("cache: %w", cascade.ErrNothing), 0},
	} {
		w := newWorld(t, cascade.Config{Tiers: five()})
		w.errs["primary"] = tt.err
		w.answeredBy("secondary")
		if v := w.view("primary"); v.For != tt.want || (v.Phase == breaker.Open) != (tt.want > 0) {
			t.Errorf("%v: is open for %v (%v), want %v", tt.err, v.For, v.Phase, tt.want)
		}
	}
}

func TestFailuresOfBeforeItOpenedProlongNothing(t *testing.T) {
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
		t.Errorf("is open for %v, want 100ms", v.For)
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
	w.phase("secondary", breaker.Closed)
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
	w := newWorld(t, cascade.Config{Tiers: five()})
	ctx, leave := context.WithCancelCause(t.Context())
	r, err := cascade.Run(ctx, w.c, func(ctx context.Context, turn cascade.Turn) (string, error) {
		leave(errGone)
		<-ctx.Done()
		return "", ctx.Err()
	})
	if err != errGone || len(r.Above) != 1 {
		t.Errorf("got %+v, %v, want the cause", r, err)
	}
	w.phase("primary", breaker.Closed)
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
	w.phase("primary", breaker.Closed)
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
	if !strings.Contains(err.Error(), "primary open for 40s: the upstream asked for it") {
		t.Errorf("got %s", err)
	}
}

// A cascade may be a tier of another one. Errors of its tiers must not count as the result of the outer tier.
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
	w.phase("primary", breaker.Closed)
}

func TestWhatAGaveUpErrorSaysIsThatOfTheLastAttempt(t *testing.T) {
	gaveUp := &retry.GaveUpError{Attempts: 3, Why: retry.ErrAttempts, Last: errors.New("429"),
		Outcome: outcome.Outcome{Class: outcome.Throttled, Code: "429", Hint: outcome.Hint{Said: true, After: 40 * time.Second}}}
	for _, err := range []error{gaveUp, fmt.Errorf("wrapped: %w", gaveUp)} {
		w := newWorld(t, cascade.Config{Tiers: five()})
		w.errs["primary"] = err
		r := w.answeredBy("secondary")
		if v := w.view("primary"); v.For != 40*time.Second || r.Above[0].Why != cascade.Failed {
			t.Errorf("%v: open for %v, %v, want 40s", err, v.For, r.Above)
		}
	}
}

// Another tier may have what one tier does not have. This does not count as a failure.
func TestWhatIsElsewhereLeadsToTheNextTier(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	missing := fmt.Errorf("%w: %w", cascade.ErrElsewhere, rejected)
	w.errs["primary"] = missing
	for range 10 {
		r := w.answeredBy("secondary")
		if a := r.Above[0]; !r.Degraded || a.Why != cascade.Failed || a.Code != "400" || a.Err != missing {
			t.Fatalf("got %+v", r)
		}
	}
	w.phase("primary", breaker.Closed)
}

// One answer makes all callers return to a tier. There is no ramp.
func TestStory(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary") // at 0s, for 1s
	w.clock.pass(time.Second)
	w.answeredBy("secondary") // the probe fails: 1.5s
	w.clock.pass(1500 * time.Millisecond)
	w.errs["primary"] = refused("rate_limited", time.Minute)
	w.answeredBy("secondary") // the probe is refused
	w.errs["primary"] = nil
	w.answeredBy("primary") // the probe succeeds
	for range 9 {
		w.answeredBy("primary")
	}
	w.trip("primary") // 1s again
	want := []string{
		"primary: closed to open: failures in a row (503) 1s",
		"primary: open to half-open: open time over 0s",
		"primary: half-open to open: probe failed (503) 1.5s",
		"primary: open to half-open: open time over 0s",
		"primary: half-open to closed: probes succeeded 0s",
		"primary: closed to open: failures in a row (503) 1s",
	}
	if !slices.Equal(w.heard, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(w.heard, "\n"), strings.Join(want, "\n"))
	}
}

// If the upstream rejects a probe, it is up.
func TestRejectedProbeIsASuccess(t *testing.T) {
	for _, err := range []error{rejected, cascade.ErrNothing, cascade.ErrElsewhere} {
		w := newWorld(t, cascade.Config{Tiers: five()})
		w.trip("primary")
		w.clock.pass(time.Second)
		w.errs["primary"] = err
		_, _ = w.run()
		w.phase("primary", breaker.Closed)
	}
}

// While a probe hangs, another starts each second, and one success is enough.
func TestAProbeThatHangsHoldsUpNobodyElse(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	w.clock.pass(time.Second)
	_, _ = cascade.Run(t.Context(), w.c, func(_ context.Context, turn cascade.Turn) (string, error) {
		if turn.Index > 0 {
			return "", nil
		}
		if !turn.Probe {
			t.Error("the call does not know that it is a probe")
		}
		w.clock.pass(time.Second - 1)
		if r := w.answeredBy("secondary"); r.Above[0].Why != cascade.IsProbed || r.Above[0].Wait != 1 {
			t.Errorf("got %+v", r.Above)
		}
		w.clock.pass(1)
		w.errs["primary"] = nil
		w.answeredBy("primary") // a second probe
		w.phase("primary", breaker.Closed)
		return "", down // the first probe ends too late to matter
	})
	w.answeredBy("primary")
}

func TestSetKeepsWhatIsKnownByName(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	w.trip("primary")
	w.errs["primary"] = nil
	tiers := []cascade.TierConfig{{Name: "new"}, {Name: "primary", Confidence: 0.5}, {Name: "message", Instant: true}}
	if err := w.c.Set(cascade.Config{Tiers: tiers}); err != nil {
		t.Fatal(err)
	}
	tiers[1].Name = "changed behind its back"
	w.errs["new"] = down
	r := w.answeredBy("message")
	if r.Above[1].Why != cascade.IsOpen {
		t.Errorf("got %+v", r.Above)
	}
	w.clock.pass(time.Second)
	if r := w.answeredBy("primary"); r.Confidence != 0.5 || r.Index != 1 {
		t.Errorf("got %+v", r)
	}
	if err := w.c.Set(cascade.Config{}); err == nil {
		t.Error("a cascade without tiers")
	}
	if got := w.c.Config(); len(got.Tiers) != 3 || got.Deadline != time.Minute || got.Tiers[0].Health != cascade.DefaultHealth() {
		t.Errorf("got %+v", got)
	}
}

// A new breaker configuration takes effect immediately.
func TestSetChangesTheHealth(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	tiers := five()
	tiers[0].Health = breaker.Config{Consecutive: 1, Open: time.Minute, FirstOpen: time.Minute}
	if err := w.c.Set(cascade.Config{Tiers: tiers}); err != nil {
		t.Fatal(err)
	}
	w.errs["primary"] = down
	w.answeredBy("secondary")
	if v := w.phase("primary", breaker.Open); v.For != time.Minute {
		t.Errorf("got %+v", v)
	}
}

func TestByHand(t *testing.T) {
	w := newWorld(t, cascade.Config{Tiers: five()})
	if w.c.Breaker("nobody") != nil || w.c.Breaker("message") != nil {
		t.Fatal("a breaker of what has none")
	}
	primary := w.c.Breaker("primary")
	primary.ForceOpen(w.c.Now(), 0)
	w.clock.pass(300 * 24 * time.Hour)
	w.answeredBy("secondary")
	primary.Reset(w.c.Now())
	w.answeredBy("primary")
	primary.ForceOpen(w.c.Now(), time.Hour)
	for i, want := range []string{"primary: closed to open: forced ", "primary: open to closed: reset 0s", "primary: closed to open: forced 1h0m0s"} {
		if !strings.HasPrefix(w.heard[i], want) {
			t.Errorf("got %q, want %q", w.heard[i], want)
		}
	}
}

func TestListenerMayUseTheCascadeAndPanic(t *testing.T) {
	var c *cascade.Cascade
	told := 0
	c, err := cascade.New(cascade.Config{Tiers: five()}, cascade.Options{Changed: func(e cascade.Change) {
		told++
		if e.To == breaker.Open {
			c.Breaker(e.Tier).Reset(c.Now())
			_ = c.View()
		}
		panic("no")
	}})
	if err != nil {
		t.Fatal(err)
	}
	c.Breaker("primary").ForceOpen(c.Now(), time.Hour)
	if v := c.View()[0]; v.Phase != breaker.Closed || told != 2 {
		t.Errorf("got %+v after %d changes", v, told)
	}
}

func TestValidateSaysAllThatIsWrong(t *testing.T) {
	c := cascade.Config{
		Tiers: []cascade.TierConfig{
			{Name: "a", Confidence: 1.5, Timeout: -1, Health: breaker.Config{Failures: -1}}, {Name: "a"},
			{Timeout: 1, Instant: true, Health: breaker.Config{Failures: 1}},
		},
	}
	want := `tier "a": confidence 1.5: must be between 0 and 1
tier "a": timeout -1ns: must not be negative
tier "a": health: failures -1: must not be negative
tier 2: name "a": is used by another tier
tier 3: name: must not be empty
tier "": timeout 1ns: an instant tier has no timeout
tier "": health: an instant tier has no breaker`
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
