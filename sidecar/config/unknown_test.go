package config

import (
	"strings"
	"testing"
	"time"
)

func TestUnknownRate(t *testing.T) {
	f, err := Parse("weir.yaml", []byte(`upstreams:
  a: {url: http://a.example, limits: {all: unknown}}
  b: {url: http://b.example, limits: {all: {rate: unknown, adaptive: {start: 20/s, max: 50/s}}}}
  c: {url: http://c.example, preset: unknown}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ start, max float64 }{{1, 1e6}, {20, 50}, {1, 1e6}} {
		l := f.Upstreams[i].Policy.Limits[0]
		c := l.Adaptive.WithDefaults(l.PerSecond())
		if !c.Unknown || c.Start != want.start || c.Max != want.max || c.Recovery != 10*time.Second || l.Full() != 1 || l.Shares() {
			t.Errorf("%s: %+v", f.Upstreams[i].Name, l)
		}
	}
	for text, want := range map[string]string{
		"{rate: unknown, unit: tokens}":               "counts requests",
		"{rate: unknown, adaptive: off}":              "an unknown rate needs adaptive",
		"{rate: unknown, shape: rolling}":             "has no rate to learn",
		"{rate: unknown, scope: k, plans: {big: 3x}}": "plans cannot multiply",
	} {
		if _, err := Parse("weir.yaml", []byte("upstreams: {a: {url: http://a.example, keys: {k: caller, plan: header:X-Plan}, limits: {all: "+text+"}}}"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// An environment variable sets the rate that the file declares as unknown.
	f, err = Parse("weir.yaml", []byte("upstreams: {a: {url: http://a.example, limits: {put: unknown}}}"), func(name string) (string, bool) { return "30", name == "THROTTLE_PUT_RATE" })
	if err != nil {
		t.Fatal(err)
	}
	if l := f.Upstreams[0].Policy.Limits[0]; l.Adaptive.Unknown || l.PerSecond() != 30 {
		t.Errorf("with THROTTLE_PUT_RATE: %+v", l)
	}
}
