package cascade_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/outcome"
)

// A hand is a clock that moves only on request. Its contexts are real.
type hand struct {
	clock.Clock
	mu  sync.Mutex
	now time.Duration
}

func newHand() *hand { return &hand{Clock: clock.System, now: time.Hour} }

func (h *hand) Now() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += d
}

// A told is an error with a given outcome.
type told outcome.Outcome

func (t *told) Error() string            { return "told " + t.Class.String() + " " + t.Code }
func (t *told) Outcome() outcome.Outcome { return outcome.Outcome(*t) }

var (
	down     = &told{Class: outcome.Failed, Code: "503"}
	rejected = &told{Class: outcome.Rejected, Code: "400"}
)

func throttled(after time.Duration) *told {
	return &told{Class: outcome.Throttled, Code: "429", Hint: outcome.Hint{Said: true, After: after}}
}

func usedUp(after time.Duration) *told {
	return &told{Class: outcome.Throttled, Code: "quota", Hint: outcome.Hint{Said: after > 0, After: after, Quota: true}}
}

func refused(code string, wait time.Duration) *told {
	return &told{Class: outcome.Canceled, Code: code, Undone: true, Unsent: true, Hint: outcome.Hint{Said: true, After: wait}}
}

// five returns the tiers of a chat: three that take time and two instant ones.
func five() []cascade.TierConfig {
	return []cascade.TierConfig{
		{Name: "primary", Confidence: 1},
		{Name: "secondary", Confidence: 0.8},
		{Name: "cached", Confidence: 0.6},
		{Name: "static", Confidence: 0.4, Instant: true},
		{Name: "message", Instant: true},
	}
}

// A world is a cascade with tiers whose errors the test sets.
type world struct {
	t     testing.TB
	c     *cascade.Cascade
	clock *hand
	errs  map[string]error // nil means that the tier answers
	asked map[string]int
	heard []string
}

func newWorld(t testing.TB, cfg cascade.Config) *world {
	t.Helper()
	w := &world{t: t, clock: newHand(), errs: map[string]error{}, asked: map[string]int{}}
	c, err := cascade.New(cfg, cascade.Options{Clock: w.clock, Changed: func(e cascade.Change) {
		w.heard = append(w.heard, fmt.Sprintf("%s: %v to %v: %s%s %v", e.Tier, e.From, e.To, e.Why, paren(e.Code), e.For))
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.c = c
	return w
}

func paren(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func (w *world) ask(_ context.Context, t cascade.Turn) (string, error) {
	w.asked[t.Tier]++
	return t.Tier, w.errs[t.Tier]
}

func (w *world) run() (cascade.Result[string], error) {
	return cascade.Run(context.Background(), w.c, w.ask)
}

// answeredBy makes a call and checks which tier answers.
func (w *world) answeredBy(want string) cascade.Result[string] {
	w.t.Helper()
	r, err := w.run()
	if err != nil || r.Tier != want || r.Value != want {
		w.t.Fatalf("got %+v, %v, want an answer by %s", r, err, want)
	}
	return r
}

func (w *world) view(name string) cascade.View {
	w.t.Helper()
	for _, v := range w.c.View() {
		if v.Tier == name {
			return v
		}
	}
	w.t.Fatalf("no tier %q", name)
	return cascade.View{}
}

func (w *world) phase(name string, want breaker.Phase) cascade.View {
	w.t.Helper()
	v := w.view(name)
	if v.Phase != want {
		w.t.Fatalf("%s is %+v, want %v", name, v, want)
	}
	return v
}

// trip makes the tier fail until its breaker opens.
func (w *world) trip(name string) {
	w.t.Helper()
	w.errs[name] = down
	for range 3 {
		if _, err := w.run(); err != nil {
			w.t.Fatal(err)
		}
	}
	w.phase(name, breaker.Open)
}
