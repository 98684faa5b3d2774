package config

import (
	"slices"
	"testing"

	"github.com/seed1158cd35/weir/internal/doc"
)

// What is in force is what the file says over its preset and under the environment, each value with its place, and no secret.
func TestSettingsAreWhatIsInForce(t *testing.T) {
	f := parse(t, `listen: 127.0.0.1:1
hosts: [a.example, b.example]
upstreams:
  s3:
    url: https://s3.example
    preset: s3
    limits:
      get: 500/s
      delete: off
  odd:
    url: https://odd.example
    keys: {tenant: "header:sk-abcdefgh12345678"}
`, "WEIR_LISTEN", "127.0.0.1:2", "THROTTLE_PUT_RATE", "7")
	all := f.Settings()
	for _, want := range []doc.Setting{
		{Field: "THROTTLE_PUT_RATE", Value: "7", From: "environment"},
		{Field: "WEIR_LISTEN", Value: "127.0.0.1:2", From: "environment"},
		{Field: "hosts", Value: "[a.example, b.example]", From: "weir.yaml:2"},
		{Field: "upstreams.s3.limits.get", Value: "500/s", From: "weir.yaml:8"},
		{Field: "upstreams.s3.limits.delete", Value: "off", From: "weir.yaml:9"},
		{Field: "upstreams.s3.limits.put.rate", Value: "3500/s", From: "preset s3 (weir.yaml:6)"},
		{Field: "upstreams.odd.keys.tenant", Value: "header:sk-***", From: "weir.yaml:12"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%v is not among %v", want, all)
		}
	}
	if slices.ContainsFunc(all, func(s doc.Setting) bool { return s.Field == "listen" }) {
		t.Error("the file's own address is shown, which the environment overrides")
	}
}
