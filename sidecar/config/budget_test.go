package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func TestBudgetsAreReadInDollars(t *testing.T) {
	for text, want := range map[string]limit.Limit{
		"{amount: 25, every: day, zone: Europe/Berlin, unit: usd}":       {Unit: "usd", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 25_000_000}, Every: bucket.Day, Zone: "Europe/Berlin"},
		"{amount: 0.5 USD, every: month, unit: USD, hold: most}":         {Unit: "usd", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 500_000}, Every: bucket.Month, Hold: limit.HoldMost},
		"{amount: 12.345678, window: 24h, unit: usd, scope: credential}": {Unit: "usd", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 12_345_678, Per: 24 * time.Hour}, Scope: "credential"},
	} {
		f := parse(t, "upstreams: {a: {url: https://h, llm: {}, limits: {money: "+text+"}}}")
		accepted(t, f)
		want.Name = "money"
		if got := f.Upstreams[0].Policy.Limits[0]; !reflect.DeepEqual(got, want) || !f.Budgets() {
			t.Errorf("%s\ngot  %+v\nwant %+v", text, got, want)
		}
	}
	f := parse(t, "callers: {limits: {money: {amount: 25, every: day, unit: usd, scope: user, plans: {premium: 3x}}}}\nupstreams: {a: {url: https://h, llm: {}}}")
	if l := limitOf(t, f.Callers.Policy, "money-premium"); l.Amount != 75_000_000 || !f.Budgets() {
		t.Errorf("%+v", l)
	}
	if parse(t, "upstreams: {a: {url: https://h, llm: {}, limits: {l: {rate: 5/s, unit: tokens}}}}").Budgets() {
		t.Error("a limit of tokens is a budget")
	}
}

func TestBudgetMistakesAreNamed(t *testing.T) {
	for fields, want := range map[string]string{
		"rate: 5/h, unit: usd":                                "limits.m.rate: a budget has no rate: a rate refills continuously",
		"amount: 5, unit: usd":                                "limits.m: has an amount without a window; write amount: 25 and every: day, or window: 24h",
		"every: day, unit: usd":                               "limits.m: has no amount",
		"amount: 5, every: day, window: 24h, unit: usd":       "limits.m.window: window cannot be combined with every",
		"amount: 5, zone: UTC, window: 24h, unit: usd":        "limits.m.zone: zone applies only to every",
		"amount: -5, every: day, unit: usd":                   "want dollars, such as 25 or 0.50",
		"amount: 0, every: day, unit: usd":                    "must be more than 0",
		"amount: 0.0000001, every: day, unit: usd":            "has more than six decimals",
		"amount: 2000000000, every: day, unit: usd":           "must be at most a billion dollars",
		"amount: 1e3, every: day, unit: usd":                  "want dollars",
		"amount: 99999999999999999999, every: day, unit: usd": "want dollars",
		"amount: 5, every: day, unit: usd, burst: 3":          "limits.m.burst: a budget has no burst",
		"amount: 5, every: day, unit: usd, shape: bucket":     "limits.m.shape: a budget has no shape",
		"amount: 5, every: day, unit: usd, adaptive: true":    "limits.m.adaptive: a budget has no adaptive",
		"amount: 5, every: day, unit: usd, hold: all":         "want learned or most",
		"amount: 5, window: 24h":                              "limits.m.window: only a budget has a window; leave it out, or add unit: usd",
		"rate: 5/s, hold: most":                               "limits.m.hold: only a budget has a hold",
		"amount: 0.5, every: day":                             "want a whole number",
	} {
		_, err := Parse("weir.yaml", []byte("upstreams: {a: {url: https://h, llm: {}, limits: {m: {"+fields+"}}}}"), func(string) (string, bool) { return "", false })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", fields, err, want)
		}
	}
	_, err := Parse("weir.yaml", []byte("upstreams: {a: {url: https://h, limits: {m: {amount: 5, every: day, unit: usd}}}}"), func(string) (string, bool) { return "", false })
	if err == nil || !strings.Contains(err.Error(), "only language models have prices; add llm: {}") {
		t.Error(err)
	}
}
