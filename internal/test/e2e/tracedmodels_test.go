//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/internal/test/served"
)

// attrsOf returns the attributes of a span as texts.
func attrsOf(s *spans.Span) map[string]string {
	all := make(map[string]string)
	for _, a := range s.Attributes {
		all[a.Key] = a.Value.String()
	}
	return all
}

// named returns the spans with a name.
func named(all []*spans.Span, name string) (found []*spans.Span) {
	for _, s := range all {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

// The trace of a model's call has the requested and the answering model, tokens, cost, tier and cache. Each lookup and each
// tier has a span. The trace contains neither the caller nor the question.
func TestATraceOfModels(t *testing.T) {
	sim := llmsim.New(llmsim.Config{Models: map[string]llmsim.Model{"gpt-4o-mini": {}}}) // gpt-4o is missing
	s, err := sim.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	r, url := otlptest.Receive(t)
	i := served.Begin(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: off
traces: {url: %q, share: 100%%}
callers: {keys: {user: "header:X-User"}}
upstreams:
  openai: {preset: openai, url: %q, retry: {attempts: 1}, llm: {cache: true, cascade: {tiers: [{name: second, model: gpt-4o-mini}]}}}
`, url, s.URL))
	ask := func(model string) {
		t.Helper()
		q, err := http.NewRequest(http.MethodPost, "http://"+i.Addr()+"/openai/v1/chat/completions", strings.NewReader(`{"model":"`+model+`","temperature":0,"messages":[{"role":"user","content":"a private matter"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		q.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer sk-1"}, "X-User": {"ann@example.com"}}
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d, want 200", resp.StatusCode)
		}
	}
	ask("gpt-4o")
	all := r.WaitFor(t, 6)
	for _, sp := range all {
		if text := sp.String(); strings.Contains(text, "ann@") || strings.Contains(text, "private") || strings.Contains(text, "sk-1") {
			t.Errorf("a span shows what it must not: %s", text)
		}
	}
	want := func(s *spans.Span, key, value string) {
		t.Helper()
		if got := attrsOf(s)[key]; !strings.Contains(got, value) {
			t.Errorf("%s: %s: got %q, want %q", s.Name, key, got, value)
		}
	}
	root := all[0]
	want(root, "gen_ai.operation.name", `"chat"`)
	want(root, "gen_ai.provider.name", `"openai"`)
	want(root, "gen_ai.request.model", `"gpt-4o"`)
	want(root, "weir.tier", `"second"`)
	want(root, "weir.degraded", "true")
	want(root, "weir.cache", `"miss"`)
	want(root, "http.route", `"/openai/"`)
	want(root, "weir.user", `"sha256:`)
	if n := len(named(all, "limits of the caller")); n != 1 {
		t.Errorf("%d spans of the caller's limits, want 1", n)
	}
	if looked := named(all, "cache"); len(looked) != 1 {
		t.Errorf("%d spans of a look-up in the cache, want 1", len(looked))
	} else {
		want(looked[0], "weir.cache", `"miss"`)
	}
	if tiers := named(all, "tier"); len(tiers) != 2 {
		t.Errorf("%d spans of tiers, want 2", len(tiers))
	} else {
		want(tiers[0], "weir.tier", `"primary"`)
		want(tiers[0], "error.type", `"model_not_found"`)
		want(tiers[1], "weir.tier", `"second"`)
		if tiers[0].Status.GetCode() != spans.Status_STATUS_CODE_ERROR || tiers[1].Status.GetCode() == spans.Status_STATUS_CODE_ERROR {
			t.Errorf("tiers: got %v and %v, want that the first failed", tiers[0].Status, tiers[1].Status)
		}
	}
	second := named(all, "openai")
	if len(second) != 1 {
		t.Fatalf("%d spans of what was sent to the second tier, want 1", len(second))
	}
	want(second[0], "gen_ai.request.model", `"gpt-4o-mini"`)
	want(second[0], "gen_ai.response.model", `"gpt-4o-mini`)
	want(second[0], "gen_ai.usage.input_tokens", "int_value")
	want(second[0], "gen_ai.usage.output_tokens", "int_value")
	want(second[0], "weir.cost", "double_value")

	n := len(all)
	ask("gpt-4o-mini")
	n = len(r.WaitFor(t, n+5))
	ask("gpt-4o-mini")
	hit := r.WaitFor(t, n+3)[n:]
	want(hit[0], "weir.tier", `"cached"`)
	want(hit[0], "weir.cache", `"hit"`)
	want(named(hit, "cache")[0], "weir.cache", `"hit"`)
}
