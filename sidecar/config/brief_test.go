package config

import (
	"reflect"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
)

// If another tier can answer, the preset's retries do not delay it. Each tier is tried twice, within a budget, unless
// the file sets something else.
func TestTiersOfACascadeAreBrief(t *testing.T) {
	want := retry.Config{Attempts: 2, Base: 200 * time.Millisecond, Cap: 20 * time.Second, Jitter: retry.FullJitter}
	for _, preset := range []string{"openai", "openai-compatible", "anthropic", "gemini"} {
		of := func(retries string) []weir.Policy {
			f := parse(t, `
upstreams:
  first: {url: "https://first.example", preset: `+preset+retries+`, llm: {cascade: {tiers: [{upstream: second}, {message: Sorry.}]}}}
  second: {url: "https://second.example", preset: `+preset+`}
  third: {url: "https://third.example", preset: `+preset+`}
`)
			var all []weir.Policy
			for _, u := range f.Upstreams {
				all = append(all, u.Policy)
			}
			return all
		}
		all := of("")
		for i, p := range all[:2] {
			if !reflect.DeepEqual(p.Retry, want) || p.Quota != nil || p.Budget.Off {
				t.Errorf("%s, tier %d: %+v, quota %v, want %+v", preset, i, p.Retry, p.Quota, want)
			}
		}
		if p := all[2]; p.Retry.Attempts < 6 || p.Quota == nil {
			t.Errorf("%s beside them: %+v, quota %v", preset, p.Retry, p.Quota)
		}
		if p := of(", retry: {schedule: llm, attempts: 5}, quota: llm")[0]; p.Retry.Attempts != 5 || p.Retry.Jitter != retry.DecorrelatedJitter || p.Quota == nil {
			t.Errorf("%s, as the file says: %+v, quota %v", preset, p.Retry, p.Quota)
		}
	}
}
