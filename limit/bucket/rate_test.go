package bucket

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestParseRateReads(t *testing.T) {
	for text, want := range map[string]Rate{
		"3000/s":               {3000, time.Second, 0},
		"5/min":                {5, time.Minute, 0},
		" 5 / m ":              {5, time.Minute, 0},
		"5/minute":             {5, time.Minute, 0},
		"5/1m":                 {5, time.Minute, 0},
		"1/day burst 25":       {1, 24 * time.Hour, 25},
		"1/d burst  25":        {1, 24 * time.Hour, 25},
		"10/250ms":             {10, 250 * time.Millisecond, 0},
		"7/hour":               {7, time.Hour, 0},
		"7/second":             {7, time.Second, 0},
		"7/1h30m":              {7, 90 * time.Minute, 0},
		"100/s burst 20":       {100, time.Second, 20},
		"63000000000/s":        {63e9, time.Second, 0},
		"1/35064h":             {1, 1461 * 24 * time.Hour, 0},
		"9223372036854775807/": {},
	} {
		got, err := ParseRate(text)
		if want == (Rate{}) {
			if err == nil {
				t.Errorf("%q: got %v, want an error", text, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%q: got %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseRateSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "want an amount per period",
		"100":                    "want an amount per period",
		"x/s":                    `amount "x" is not a whole number`,
		"1.5/s":                  `amount "1.5" is not a whole number`,
		"5/fortnight":            `period "fortnight": want s, min, h, day`,
		"5/-1s":                  `period "-1s"`,
		"5/0s":                   `period "0s"`,
		"5/s burst many":         `burst "many" is not a whole number`,
		"0/s":                    "amount 0: must be at least 1",
		"5/s burst -1":           "burst -1: must not be negative",
		"64/1ns":                 "must be below 64 units per nanosecond",
		"1/day burst 2000000":    "would take more than",
		"1/100000h":              "would take more than",
		"99999999999999999999/s": "is not a whole number",
	} {
		if _, err := ParseRate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestValidateReportsEveryMistake(t *testing.T) {
	err := Rate{Amount: -1, Per: -1, Burst: -1}.Validate()
	for _, field := range []string{"amount -1", "period -1ns", "burst -1"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want a word about %s", err, field)
		}
	}
}

func TestDefaultBurstIsOneSecondsWorth(t *testing.T) {
	for _, c := range []struct {
		r    Rate
		want int64
	}{
		{Rate{Amount: 3000, Per: time.Second}, 3000},
		{Rate{Amount: 90, Per: time.Minute}, 1},
		{Rate{Amount: 120, Per: time.Minute}, 2},
		{Rate{Amount: 1, Per: 24 * time.Hour}, 1},
		{Rate{Amount: 10, Per: 250 * time.Millisecond}, 40},
		{Rate{Amount: 5, Per: time.Second, Burst: 7}, 7},
		{Rate{Amount: math.MaxInt64, Per: 1}, math.MaxInt64},
		{Rate{}, 1},
	} {
		if got := c.r.Full(); got != c.want {
			t.Errorf("%v: full %d, want %d", c.r, got, c.want)
		}
	}
}

func TestRatesSurviveStringAndParse(t *testing.T) {
	cases(t, 5000, func(rng *rand.Rand) error {
		r := anyRate(rng)
		got, err := ParseRate(r.String())
		if err == nil && got != r {
			t.Errorf("%v: read back as %v", r, got)
		}
		return err
	})
}

func FuzzParseRate(f *testing.F) {
	for _, r := range rates {
		f.Add(r.String())
	}
	for _, s := range []string{"", "/", "1/", "/s", "1/s burst ", "1/s burst 0", "0x10/s", "1_0/s", "+5/s", "1/2562047h47m16.854775807s", "5/s burst 1 burst 2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRate(text)
		if err != nil {
			return
		}
		again, err := ParseRate(r.String())
		if err != nil || again != r {
			t.Errorf("%q reads as %v, and that as %v, %v", text, r, again, err)
		}
		l := NewLine(0, r)
		if l.Full() != r.Full() || l.Unit() <= 0 || l.Depth() < l.Unit() {
			t.Errorf("%v: line %+v", r, l)
		}
	})
}
