package config

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
)

func TestBreakerInEveryForm(t *testing.T) {
	five, _ := breaker.Schedule("five-a-minute")
	http, _ := presetText("http")
	if http == "" {
		t.Fatal("no preset http")
	}
	ofHTTP := (breaker.Config{}).WithDefaults()
	ofHTTP.MaxOpen, ofHTTP.ProbeTimeout = 0, 0
	with := func(c breaker.Config, change func(*breaker.Config)) breaker.Config {
		change(&c)
		return c
	}
	for _, c := range []struct {
		fields, scope string
		want          breaker.Config
	}{
		{"max_wait: 1s", "", breaker.Config{}},
		{"breaker: {}", "", breaker.Config{}},
		{"breaker: off", "", breaker.Config{Off: true}},
		{"breaker: five-a-minute", "", five},
		{"breaker: {schedule: five-a-minute, failures: 9}", "", with(five, func(c *breaker.Config) { c.Failures = 9 })},
		{"breaker: {scope: upstream}", weir.WholeUpstream, breaker.Config{}},
		{"preset: http", "", ofHTTP},
		{"preset: http, breaker: {open: 5s}", "", with(ofHTTP, func(c *breaker.Config) { c.Open = 5 * time.Second })},
		{"preset: http, breaker: {open: 500ms}", "", with(ofHTTP, func(c *breaker.Config) { c.Open, c.FirstOpen = 500*time.Millisecond, 500*time.Millisecond })},
		{"preset: http, breaker: {share: off, consecutive_for: off}", "", with(ofHTTP, func(c *breaker.Config) { c.Share, c.ConsecutiveFor = 0, 0 })},
		{"preset: http, breaker: five-a-minute", "", five},
		{"breaker: {consecutive: 5, success_takes_one: true}", "", breaker.Config{Consecutive: 5, SuccessTakesOne: true}},
		{"preset: openai, breaker: five-a-minute", "model", with(five, func(c *breaker.Config) { c.ProbeTimeout = time.Second })},
		{"preset: openai", "model", breaker.Config{Open: time.Second, ProbeTimeout: time.Second}},
		{"llm: {}", "", breaker.Config{Open: time.Second, ProbeTimeout: time.Second}},
		{"llm: {}, breaker: {open: 10s, probe_timeout: 5s}", "", breaker.Config{Open: 10 * time.Second, ProbeTimeout: 5 * time.Second}},
		{"llm: {}, breaker: {first_open: 2s}", "", breaker.Config{FirstOpen: 2 * time.Second, ProbeTimeout: time.Second}},
		{"preset: drs", "", breaker.Config{Off: true}},
		{"preset: drs, breaker: five-a-minute", "", five},
		{"preset: drs, breaker: {schedule: five-a-minute, open: 1m}", "", with(five, func(c *breaker.Config) { c.Open = time.Minute })},
	} {
		p := policy(t, c.fields)
		if p.Breaker != c.want || p.BreakerScope != c.scope {
			t.Errorf("%s:\ngot  %+v by %q\nwant %+v by %q", c.fields, p.Breaker, p.BreakerScope, c.want, c.scope)
		}
		if err := p.Breaker.Validate(); err != nil {
			t.Errorf("%s: %v", c.fields, err)
		}
	}
}
