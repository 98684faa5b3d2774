package adaptive

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	for _, x := range []struct {
		name string
		c    Config
		want Config
	}{
		{"zero", Config{}, Config{Start: 500, Min: 5, Max: 500, Cut: 0.7, Grow: 1.05, Step: 0.01, Recovery: 20 * sec, Interval: 250 * ms, CutInterval: sec, UsedShare: 0.5}},
		{"multiply", Config{Rule: Multiply, Max: 50}, Config{Rule: Multiply, Start: 50, Min: 0.5, Max: 50, Cut: 0.5, Grow: 1.05, Step: 0.01, Recovery: 20 * sec, Interval: sec, CutInterval: sec, UsedShare: 0.5}},
		{"above the limit", Config{Max: 1000, Start: 800, Min: 700}, Config{Start: 500, Min: 500, Max: 500, Cut: 0.7, Grow: 1.05, Step: 0.01, Recovery: 20 * sec, Interval: 250 * ms, CutInterval: sec, UsedShare: 0.5}},
	} {
		if got := x.c.WithDefaults(500); got != x.want {
			t.Errorf("%s: got %+v, want %+v", x.name, got, x.want)
		}
	}
}

func TestValidateReportsEveryMistake(t *testing.T) {
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the zero config: %v", err)
	}
	bad := Config{
		Rule: 9, Start: -1, Min: math.NaN(), Max: math.Inf(1), Cut: 1, Grow: 1, Step: 2, UsedShare: -1,
		Recovery: -1, Interval: -1, CutInterval: -1,
	}
	err := bad.Validate()
	for _, field := range []string{"rule", "start", "min", "max", "cut", "grow", "step", "used share", "recovery", "interval", "cut interval"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+field+" ") {
			t.Errorf("no complaint of %s in: %v", field, err)
		}
	}
	for _, c := range []Config{{Start: 2, Max: 1}, {Min: 2, Start: 1}, {Min: 2, Max: 1}} {
		if c.Validate() == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}

func TestRuleIsText(t *testing.T) {
	for _, r := range []Rule{Cubic, Multiply, Add, MultiplyEach} {
		text, _ := r.MarshalText()
		var got Rule
		if err := got.UnmarshalText(text); err != nil || got != r {
			t.Errorf("%s became %v, %v", text, got, err)
		}
	}
	r := Add
	if err := r.UnmarshalText([]byte("square")); err == nil || r != Add {
		t.Errorf("square became %v, %v", r, err)
	}
	if got := Rule(9).String(); got != "rule 9" {
		t.Errorf("got %q", got)
	}
}

// A histogram's p99 is at least the true one, and at most a quarter above it.
func TestTripsKnowTheirNinetyNinth(t *testing.T) {
	for _, trip := range []time.Duration{ms, 50 * ms, 700 * ms, 10 * sec} {
		var h trips
		now := time.Duration(0)
		for range 100_000 {
			now += 977 * time.Microsecond
			h.note(now, trip)
		}
		if got := h.p99(); got < trip || got > trip*5/4+4*time.Microsecond {
			t.Errorf("p99 of trips of %v is %v", trip, got)
		}
	}
	var few trips
	few.note(0, sec)
	if got := few.p99(); got != 0 {
		t.Errorf("p99 of one trip is %v, want 0", got)
	}
}

func TestStepsFit(t *testing.T) {
	for d := time.Microsecond; d < 24*time.Hour; d += d/7 + 1 {
		if s := step(d); top(s) < d && s < 127 || s > 0 && top(s-1) > d {
			t.Fatalf("%v is in step %d, which ends at %v; the one before at %v", d, s, top(s), top(s-1))
		}
	}
}
