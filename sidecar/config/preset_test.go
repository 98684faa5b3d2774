package config

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/retry"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// policy returns the policy of the upstream a with the fields.
func policy(t *testing.T, fields string, env ...string) weir.Policy {
	t.Helper()
	return parse(t, "upstreams: {a: {url: https://h, "+fields+"}}", env...).Upstreams[0].Policy
}

func limitOf(t *testing.T, p weir.Policy, name string) limit.Limit {
	t.Helper()
	i := slices.IndexFunc(p.Limits, func(l limit.Limit) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("no limit %s in %v", name, p.Limits)
	}
	return p.Limits[i]
}

func TestEveryPresetIsAccepted(t *testing.T) {
	if got := Presets(); !slices.Contains(got, "s3") || !slices.Contains(got, "http") {
		t.Errorf("presets %v", got)
	}
	for _, name := range Presets() {
		accepted(t, parse(t, "upstreams: {a: {url: https://h, preset: "+name+"}}"))
		if text, ok := presetText(name); !ok || text == "" {
			t.Errorf("%s has no text", name)
		}
	}
	if _, ok := presetText("../config"); ok {
		t.Error("a preset that is none")
	}
}

func TestS3(t *testing.T) {
	p := policy(t, "preset: s3")
	for _, c := range []struct {
		name           string
		ceiling, start float64
	}{{"put", 3500, 3000}, {"get", 5500, 5000}, {"delete", 3000, 3000}} {
		l := limitOf(t, p, c.name)
		if l.PerSecond() != c.ceiling || !l.Adaptive.On || l.Adaptive.Start != c.start {
			t.Errorf("%s: got %v from %v, want %v from %v", c.name, l.PerSecond(), l.Adaptive.Start, c.ceiling, c.start)
		}
		if c.ceiling > c.start && l.Adaptive.Start+float64(l.Full()) > c.ceiling {
			t.Errorf("%s: burst %d and first rate %v are above %v", c.name, l.Full(), c.start, c.ceiling)
		}
		if !slices.Equal(l.Operations, []string{c.name}) {
			t.Errorf("%s counts %v", c.name, l.Operations)
		}
	}
	if p.Breaker != (breaker.Config{}) || p.BreakerScope != "" {
		t.Errorf("breaker %+v by %q, want the default for each operation", p.Breaker, p.BreakerScope)
	}
	if s, _ := retry.Schedule("aws-patient"); !reflect.DeepEqual(p.Retry, s) {
		t.Errorf("retry %+v, want %+v", p.Retry, s)
	}
	if q, _ := retry.QuotaSchedule("aws-patient"); p.Quota == nil || !reflect.DeepEqual(*p.Quota, q) {
		t.Errorf("quota %+v, want %+v", p.Quota, q)
	}
}

func TestHTTP(t *testing.T) {
	p := policy(t, "preset: http")
	if len(p.Limits) != 0 || p.Retry.Attempts != 3 || p.Retry.Jitter != retry.FullJitter || p.Budget.Off || p.Breaker.Off {
		t.Errorf("got %+v", p)
	}
	if got, want := p.Breaker.WithDefaults(), (breaker.Config{}).WithDefaults(); got != want {
		t.Errorf("breaker %+v, want the default, %+v", got, want)
	}
}

// A retry does not publish a message twice, and the limits of ntfy.sh are kept.
func TestNtfy(t *testing.T) {
	u := parse(t, "upstreams: {a: {preset: ntfy}}").Upstreams[0]
	if u.URL.String() != "https://ntfy.sh" || u.Schedule != "messaging" {
		t.Errorf("%v by %s", u.URL, u.Schedule)
	}
	if l := limitOf(t, u.Policy, "requests"); l.Full() != 60 || l.PerSecond() != 0.2 || len(l.Operations) != 0 {
		t.Errorf("requests %+v", l)
	}
	if l := limitOf(t, u.Policy, "day"); l.Shape != limit.Calendar || fmt.Sprint(l) != "250 a day (UTC)" || !slices.Equal(l.Operations, []string{"publish"}) {
		t.Errorf("day %q %v %q", fmt.Sprint(l), l.Shape, l.Operations)
	}
	for _, o := range u.Policy.Operations {
		if o.Safe != weir.No {
			t.Errorf("%s is repeated though it may have been done", o.Name)
		}
	}
	if s, _ := retry.Schedule("messaging"); !reflect.DeepEqual(u.Policy.Retry, s) {
		t.Errorf("retry %+v, want %+v", u.Policy.Retry, s)
	}
	more := parse(t, "upstreams: {a: {preset: ntfy, deliver_headers: [X-Mine]}}").Upstreams[0].Keep
	if !slices.Contains(u.Keep, "X-Delay") || !slices.Contains(u.Keep, "Email") || !slices.Equal(more, append(slices.Clone(u.Keep), "X-Mine")) {
		t.Errorf("kept are %v, and %v where the file names one", u.Keep, more)
	}
}

func TestOwnFieldsOverlayThePreset(t *testing.T) {
	base := policy(t, "preset: s3")
	for _, c := range []struct {
		name, fields string
		change       func(*weir.Policy)
	}{
		{"nothing", "limits: , retry: , breaker: {}", func(*weir.Policy) {}},
		{"one field", "breaker: {open: 5s}", func(p *weir.Policy) { p.Breaker.Open = 5 * time.Second }},
		{"off", "breaker: off", func(p *weir.Policy) { p.Breaker = weir.Policy{}.Breaker; p.Breaker.Off = true }},
		{"a limit gone", "limits: {put: off}", func(p *weir.Policy) { p.Limits = p.Limits[1:] }},
		{"a limit more", "limits: {all: 9/s}", func(p *weir.Policy) {
			p.Limits = append(slices.Clone(p.Limits), limit.Limit{Name: "all", Rate: mustRate("9/s")})
		}},
		{"a rate, short", "limits: {put: 100/s}", func(p *weir.Policy) {
			p.Limits = slices.Clone(p.Limits)
			p.Limits[0].Rate = mustRate("100/s burst 100")
		}},
		{"a rate with burst", "limits: {put: 100/s burst 7}", func(p *weir.Policy) {
			p.Limits = slices.Clone(p.Limits)
			p.Limits[0].Rate = mustRate("100/s burst 7")
		}},
		{"a higher rate keeps the burst", "limits: {put: {rate: 9000/s}}", func(p *weir.Policy) {
			p.Limits = slices.Clone(p.Limits)
			p.Limits[0].Rate = mustRate("9000/s burst 300")
		}},
		{"a burst", "limits: {put: {burst: 7}}", func(p *weir.Policy) {
			p.Limits = slices.Clone(p.Limits)
			p.Limits[0].Burst = 7
		}},
		{"learning, more of it", "limits: {put: {adaptive: {min: 5/s}}}", func(p *weir.Policy) {
			p.Limits = slices.Clone(p.Limits)
			p.Limits[0].Adaptive.Min = 5
		}},
		{"learning, as it is", "limits: {put: {adaptive: true}}", func(p *weir.Policy) {}},
		{"an operation more comes first", "operations: {copy: {methods: [COPY]}}", func(p *weir.Policy) {
			p.Operations = append([]weir.Operation{{Name: "copy", Methods: []string{"COPY"}}}, p.Operations...)
		}},
		{"an operation changed stays", "operations: {get: {safe: no}}", func(p *weir.Policy) {
			p.Operations = slices.Clone(p.Operations)
			p.Operations[1].Safe = weir.No
		}},
		{"a list is replaced", "operations: {put: {methods: PUT}}", func(p *weir.Policy) {
			p.Operations = slices.Clone(p.Operations)
			p.Operations[0].Methods = []string{"PUT"}
		}},
		{"a schedule changed", "retry: {attempts: 7}", func(p *weir.Policy) { p.Retry.Attempts = 7 }},
		{"a schedule replaced", "retry: drs", func(p *weir.Policy) { p.Retry, _ = retry.Schedule("drs") }},
		{"no retries", "retry: off", func(p *weir.Policy) { p.Retry = retry.Config{Attempts: 1} }},
		{"slack off", "retry: {hint_slack: off}", func(p *weir.Policy) { p.Retry.HintSlack = 0 }},
		{"an operation's own retry", "operations: {put: {retry: {attempts: 9}}}", func(p *weir.Policy) {
			p.Operations = slices.Clone(p.Operations)
			own := p.Retry
			own.Attempts = 9
			p.Operations[0].Retry = &own
		}},
		{"timeouts", "timeouts: {call: off}", func(p *weir.Policy) { p.Timeouts.Call = -1 }},
	} {
		want := base
		c.change(&want)
		if got := policy(t, "preset: s3, "+c.fields); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.name, got, want)
		}
	}
}

func TestQuotaAndBudgetReplaceEachOther(t *testing.T) {
	p := policy(t, "preset: http, quota: aws-2026")
	if p.Quota == nil || p.Quota.Capacity != 500 || p.Budget != (retry.BudgetConfig{}) {
		t.Errorf("got %+v and %+v", p.Quota, p.Budget)
	}
	if p := policy(t, "preset: http, quota: off, budget: {share: 20%}"); p.Quota != nil || p.Budget.Share != 0.2 || p.Budget.Window == 0 {
		t.Errorf("got %+v and %+v", p.Quota, p.Budget)
	}
}

// The budget of all processes together is compatible with both. The file's value overrides the preset's.
func TestTheBudgetOfAllStandsBesideQuotaAndBudget(t *testing.T) {
	all, few := mustRate("105000/min"), mustRate("9/min")
	for fields, want := range map[string]struct {
		capacity int64 // of the quota; 0 means none
		budget   retry.BudgetConfig
	}{
		"":                                   {500, retry.BudgetConfig{All: all}},
		", budget: {all: 9/min}":             {500, retry.BudgetConfig{All: few}},
		", budget: {all: off}":               {500, retry.BudgetConfig{}},
		", quota: {capacity: 7}":             {7, retry.BudgetConfig{All: all}},
		", quota: off":                       {0, retry.BudgetConfig{All: all}},
		", budget: {share: 20%}":             {0, retry.BudgetConfig{Share: 0.2, All: all}},
		", budget: off":                      {0, retry.BudgetConfig{Off: true}},
		", quota: aws, budget: {all: 9/min}": {500, retry.BudgetConfig{All: few}},
	} {
		p := policy(t, "preset: s3"+fields)
		var capacity int64
		if p.Quota != nil {
			capacity = p.Quota.Capacity
		}
		if capacity != want.capacity || p.Budget != want.budget {
			t.Errorf("s3%s: a quota of %d and %+v, want %+v", fields, capacity, p.Budget, want)
		}
	}
}

func mustRate(s string) bucket.Rate {
	r, wrong, _ := parseRate(s)
	if wrong != "" {
		panic(wrong)
	}
	return r
}

// The figures are exactly those of a messaging system.
func TestPresetMessaging(t *testing.T) {
	u := parse(t, "upstreams: {a: {url: https://h, preset: messaging}}").Upstreams[0]
	s := time.Second
	if got := u.Policy.Timeouts; got.Connect != 5*s || got.TLS != 5*s || got.Headers != 5*s || got.Attempt != 10*s || got.Call != 10*s || got.Body != 10*s {
		t.Errorf("timeouts %+v", got)
	}
	if got, want := u.Idle, (proxy.Idle{Most: 100, PerHost: 10, For: 90 * s}); got != want {
		t.Errorf("idle connections %+v, want %+v", got, want)
	}
	if want, _ := retry.Schedule("messaging"); !reflect.DeepEqual(u.Policy.Retry, want) || u.Schedule != "messaging" {
		t.Errorf("retries %+v, deliveries %s", u.Policy.Retry, u.Schedule)
	}
	if len(u.Policy.Limits) != 0 {
		t.Errorf("limits %v", u.Policy.Limits)
	}
}
