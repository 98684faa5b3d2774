package config

import (
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/limit"
)

func TestShadowLimitsAreRead(t *testing.T) {
	f, err := Parse("weir.yaml", []byte(`
callers:
  limits: {user-day: {shadow: {amount: 100}}}
upstreams:
  s3:
    url: http://127.0.0.1:9
    keys: {tenant: "header:X-Tenant"}
    limits:
      all: {rate: 100/s, burst: 200, shadow: {rate: 50/s}}
      tenant: {rate: 10/s, scope: tenant, shadow: true}
      plain: {rate: 5/s, shadow: off}
`), setting(nil))
	if err != nil {
		t.Fatal(err)
	}
	p := f.Upstreams[0].Policy
	if len(p.Limits) != 2 || p.Limits[0].Amount != 100 || p.Limits[0].Burst != 200 || p.Limits[1].Name != "plain" {
		t.Errorf("limits: %+v", p.Limits)
	}
	if len(p.Shadow) != 2 || p.Shadow[0].Name != "all" || p.Shadow[0].Amount != 50 || p.Shadow[1].Name != "tenant" || p.Shadow[1].Scope != "tenant" {
		t.Errorf("shadow: %+v", p.Shadow)
	}
	c := f.Callers.Policy
	if len(c.Shadow) != 2 || c.Shadow[0].Shape != limit.Calendar || c.Shadow[0].Amount != 100 || len(c.Limits) != 5 {
		t.Errorf("callers: %+v %+v", c.Limits, c.Shadow)
	}
}

func TestMistakesOfShadowLimits(t *testing.T) {
	for text, want := range map[string]string{
		"{rate: 100/s, shadow: yes please}":                         "shadow",
		"{rate: 100/s, shadow: [1]}":                                "shadow",
		"{rate: 100/s, shadow: {rate: 5}}":                          "rate",
		"{rate: 100/s, shadow: {rat: 5/s}}":                         "rat",
		"{rate: 100/s, shadow: {adaptive: true}}":                   "cannot change",
		"{rate: 100/s, adaptive: true, shadow: {rate: 1/s}}":        "cannot be tried",
		"{rate: unknown, shadow: true}":                             "cannot be tried",
		"{rate: 100/s, shadow: {shadow: true}}":                     "shadow",
		"{rate: 100/s, shadow: {unit: usd}}":                        "separate limit",
		"{rate: 100/s, scope: nobody, shadow: {rate: 1/s}}":         "nobody",
		"{rate: 100/s, operations: [put], shadow: {rate: 1/s}}":     "operations",
		"{rate: 100/s, shadow: {operations: [put]}}":                "separate limit",
		"{rate: 100/s, shadow: {scope: nobody}}":                    "separate limit",
		"{rate: 100/s, shadow: {rate: 1/s, every: day, amount: 5}}": "",
	} {
		_, err := Parse("weir.yaml", []byte("upstreams:\n  s3:\n    url: http://127.0.0.1:9\n    limits:\n      all: "+text+"\n"), setting(nil))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), "weir.yaml:") != 1 {
			t.Errorf("%s: %v, want one error about %q", text, err, want)
		}
	}
}
