package retry_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func TestZeroConfigMeansTheDocumentedDefaults(t *testing.T) {
	want := retry.Config{
		Attempts: 3, Base: 100 * time.Millisecond, ThrottleBase: 100 * time.Millisecond, Cap: 20 * time.Second,
		Jitter: retry.FullJitter, Low: 0.5, High: 1.5, Added: 500 * time.Millisecond, MaxHint: time.Minute,
		RetryOn: []outcome.Class{outcome.Throttled, outcome.Failed, outcome.Unknown},
	}
	if got := (retry.Config{}).WithDefaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if err := (retry.Config{}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateReportsEveryMistakeAtOnce(t *testing.T) {
	err := retry.Config{
		Attempts: -1, Base: -time.Second, ThrottleBase: -2, Cap: -3, Jitter: 42, Low: -1, High: math.NaN(),
		Added: -4, MaxHint: -5, HintSlack: -6,
		RetryOn: []outcome.Class{outcome.OK, outcome.Failed, outcome.Canceled, 77},
		Codes:   []string{"", "Busy"}, NotCodes: []string{"Busy", ""},
	}.Validate()
	if err == nil {
		t.Fatal("no mistake found")
	}
	for _, want := range []string{
		"attempts -1: ", "base -1s: ", "throttle_base -2ns: ", "cap -3ns: must not be neg", "jitter 42: ", "low -1: ", "high NaN: ",
		"added -4ns: ", "max_hint -5ns: ", "hint_slack -6ns: ", "retry_on ok: ", "retry_on canceled: ", "retry_on unknown: ",
		`codes ["" "Busy"]: `, `not_codes ["Busy" ""]: `, `codes "Busy": is also in not_codes`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from\n%v", want, err)
		}
	}
}

func TestValidateFindsWhatDoesNotGoTogether(t *testing.T) {
	for _, tt := range []struct {
		name string
		c    retry.Config
		want string
	}{
		{"cap under base", retry.Config{Base: 2 * time.Second, Cap: time.Second}, "cap 1s: must not be below base 2s"},
		{"default cap under base", retry.Config{Base: time.Minute}, "cap 20s: must not be below base 1m0s"},
		{"cap under throttle base", retry.Config{ThrottleBase: time.Minute}, "cap 20s: must not be below throttle_base 1m0s"},
		{"low over high", retry.Config{Low: 2}, "low 2: must not be above high 1.5"},
		{"infinite factor", retry.Config{High: math.Inf(1)}, "high +Inf: must be above 0 and at most 1000"},
	} {
		if err := tt.c.Validate(); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, err, tt.want)
		}
	}
	if err := (retry.Config{Attempts: 1, RetryOn: []outcome.Class{outcome.Rejected}}).Validate(); err != nil {
		t.Errorf("valid: %v", err)
	}
}

func TestSchedules(t *testing.T) {
	want := map[string]retry.Config{
		"aws":      {Attempts: 3, Base: time.Second, Cap: 20 * time.Second},
		"aws-2026": {Attempts: 3, Base: 50 * time.Millisecond, ThrottleBase: time.Second, Cap: 20 * time.Second, HintSlack: 5 * time.Second},
		"aws-patient": {
			Attempts: 8, Base: 100 * time.Millisecond, ThrottleBase: 2 * time.Second, Cap: 20 * time.Second, HintSlack: 5 * time.Second,
		},
		"drs":               {Attempts: 6, Base: time.Second, Cap: time.Minute, Jitter: retry.RangeJitter, Low: 0.5, High: 1.5},
		"messaging":         {Attempts: 4, Base: time.Second, Cap: 32 * time.Second, Jitter: retry.AddedJitter, Added: 500 * time.Millisecond},
		"not-enough-tokens": {Attempts: 4, Base: 2 * time.Second, Cap: 8 * time.Second, Jitter: retry.NoJitter},
		"llm":               {Attempts: 6, Base: 100 * time.Millisecond, Cap: 10 * time.Second, Jitter: retry.DecorrelatedJitter},
	}
	if got := retry.Schedules(); len(got) != len(want) || !slices.IsSorted(got) {
		t.Errorf("Schedules() = %v", got)
	}
	for _, name := range retry.Schedules() {
		c, ok := retry.Schedule(name)
		if !ok || !reflect.DeepEqual(c, want[name]) {
			t.Errorf("%s: got %+v, %v\nwant %+v", name, c, ok, want[name])
		}
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, ok := retry.Schedule("AWS"); ok {
		t.Error("there is a schedule named AWS")
	}
}

// TestScheduleDelays checks the minimum and maximum delay before every retry.
func TestScheduleDelays(t *testing.T) {
	s, ms := time.Second, time.Millisecond
	for _, tt := range []struct {
		name      string
		class     outcome.Class
		low, high []time.Duration
	}{
		{"aws", outcome.Failed, []time.Duration{0, 0}, []time.Duration{s, 2 * s}},
		{"aws-2026", outcome.Failed, []time.Duration{0, 0}, []time.Duration{50 * ms, 100 * ms}},
		{"aws-2026", outcome.Throttled, []time.Duration{0, 0}, []time.Duration{s, 2 * s}},
		{"drs", outcome.Throttled, []time.Duration{500 * ms, s, 2 * s, 4 * s, 8 * s}, []time.Duration{1500 * ms, 3 * s, 6 * s, 12 * s, 24 * s}},
		{"aws-patient", outcome.Failed, []time.Duration{0, 0, 0}, []time.Duration{100 * ms, 200 * ms, 400 * ms}},
		{"aws-patient", outcome.Throttled, []time.Duration{0, 0, 0, 0, 0}, []time.Duration{2 * s, 4 * s, 8 * s, 16 * s, 20 * s}},
		{"messaging", outcome.Throttled, []time.Duration{s, 2 * s, 4 * s}, []time.Duration{1500 * ms, 2500 * ms, 4500 * ms}},
		{"llm", outcome.Throttled, []time.Duration{100 * ms, 100 * ms}, []time.Duration{300 * ms, 900 * ms}},
	} {
		c, _ := retry.Schedule(tt.name)
		for i := range tt.low {
			low, high := time.Duration(math.MaxInt64), time.Duration(0)
			for range 20_000 {
				prev := time.Duration(0)
				if i > 0 {
					prev = c.Delay(1, 0, tt.class, nil)
				}
				d := c.Delay(i+1, prev, tt.class, nil)
				low, high = min(low, d), max(high, d)
			}
			near := tt.high[i] / 20
			if low < tt.low[i] || low > tt.low[i]+near || high > tt.high[i] || high < tt.high[i]-near {
				t.Errorf("%s after %v number %d: waits %v to %v, want %v to %v", tt.name, tt.class, i+1, low, high, tt.low[i], tt.high[i])
			}
		}
	}
}
