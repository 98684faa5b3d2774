//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/internal/test/served"
)

// fallback is a gateway whose first model is gpt-4o, with a receiver of its traces. It samples nothing early unless share is
// set.
type fallback struct {
	*testing.T
	sim  *llmsim.Provider
	to   *otlptest.Receiver
	i    *served.Inside
	seen int // spans of earlier calls
}

func fallingBack(t *testing.T, share, tiers, more string) *fallback {
	t.Helper()
	f := &fallback{T: t, sim: llmsim.New(llmsim.Config{})}
	s, err := f.sim.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	answers := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(answers, []byte("answers:\n  - {id: hours, keywords: [open], answer: From nine to five.}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var url string
	f.to, url = otlptest.Receive(t)
	f.i = served.Begin(t, fmt.Sprintf(`listen: 127.0.0.1:0
admin: off
traces: {url: %q, %s}
upstreams:
  openai: {preset: openai, url: %q, retry: {attempts: 1}, llm: {cascade: {tiers: [%s]}%s}}
  other: {preset: openai, url: %q, retry: {attempts: 1}}
`, url, share, s.URL, strings.ReplaceAll(tiers, "ANSWERS", strconv.Quote(answers)), more, s.URL))
	return f
}

// ask calls gpt-4o and returns the trace of the call, its first span first.
func (f *fallback) ask(question string, stream bool) []*spans.Span {
	f.Helper()
	body, err := json.Marshal(map[string]any{"model": "gpt-4o", "temperature": 0, "stream": stream, "messages": []map[string]string{{"role": "user", "content": question}}})
	if err != nil {
		f.Fatal(err)
	}
	q, err := http.NewRequest(http.MethodPost, "http://"+f.i.Addr()+"/openai/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		f.Fatal(err)
	}
	q.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer sk-1"}}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		f.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		f.Fatalf("status %d, want 200", resp.StatusCode)
	}
	all := f.to.WaitFor(f, f.seen+1)[f.seen:]
	f.seen += len(all)
	for _, s := range all {
		if string(s.TraceId) != string(all[0].TraceId) {
			f.Errorf("span %s is of another trace", s.Name)
		}
	}
	return all
}

// fails makes later calls of a model fail.
func (f *fallback) fails(model string) {
	f.sim.Fault(llmsim.Fault{Kind: llmsim.Error, Model: model, Times: -1})
}

// has reports differing attributes of a span. "" means a missing one.
func has(t *testing.T, s *spans.Span, want map[string]string) {
	t.Helper()
	attrs := attrsOf(s)
	for key, value := range want {
		if got := attrs[key]; value == "" && got != "" || !strings.Contains(got, value) {
			t.Errorf("%s: %s: got %q, want %q", s.Name, key, got, value)
		}
	}
}

const (
	notSampled = "share: off, each_second: off"
	allSampled = "share: 100%"
)

// TestTraceOfFallbackContainsCallThatAnswered checks that the first span of a call that another model answered names that model,
// its tokens, its cost and its result, and that the trace contains the span of the call to that model, whenever it was decided to keep it.
func TestTraceOfFallbackContainsCallThatAnswered(t *testing.T) {
	for _, tier := range []struct{ name, fields, span string }{
		{"a model of the upstream", "{name: second, model: gpt-4o-mini}", "openai"},
		{"a model elsewhere", "{name: second, model: gpt-4o-mini, upstream: other}", "other"},
		{"the third model", "{name: down, model: gpt-4.1}, {name: second, model: gpt-4o-mini}", "openai"},
	} {
		for _, share := range []string{notSampled, allSampled} {
			for _, stream := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, stream %v", tier.name, share, stream), func(t *testing.T) {
					f := fallingBack(t, share, tier.fields, "")
					f.fails("gpt-4o")
					f.fails("gpt-4.1")
					all := f.ask("hello", stream)
					root := all[0]
					late := ""
					if share == notSampled {
						late = `"late"`
					}
					model := map[string]string{"gen_ai.response.model": `"gpt-4o-mini`, "gen_ai.usage.input_tokens": "int_value", "gen_ai.usage.output_tokens": "int_value", "weir.cost": "double_value", "weir.class": `"ok"`, "error.type": ""}
					has(t, root, model)
					has(t, root, map[string]string{"gen_ai.request.model": `"gpt-4o"`, "weir.tier": `"second"`, "weir.degraded": "true", "weir.kept": `"failed"`, "weir.sampled": late, "http.response.status_code": "200"})
					if root.Status.GetCode() == spans.Status_STATUS_CODE_ERROR || root.Status.GetMessage() != "" {
						t.Errorf("the call has the status %v, want that of its answer", root.Status)
					}
					calls := named(all, tier.span)
					if len(calls) == 0 {
						t.Fatalf("the trace has no span of the call that was answered: %v", all)
					}
					answered := calls[len(calls)-1]
					has(t, answered, model)
					has(t, answered, map[string]string{"gen_ai.request.model": `"gpt-4o-mini"`})
					for _, key := range []string{"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "weir.cost"} {
						if got, want := attrsOf(root)[key], attrsOf(answered)[key]; got != want {
							t.Errorf("%s: the call has %s, the call that was answered %s", key, got, want)
						}
					}
					under := 0
					for _, s := range all {
						if string(s.ParentSpanId) == string(answered.SpanId) && s.Kind == spans.Span_SPAN_KIND_CLIENT {
							under++
						}
					}
					if under != 1 {
						t.Errorf("the call that was answered has %d spans of attempts, want 1", under)
					}
				})
			}
		}
	}
}

// TestTraceOfFallbackWithoutModelCostsNothing checks calls that the cache, a static answer or a message answered.
func TestTraceOfFallbackWithoutModelCostsNothing(t *testing.T) {
	for _, c := range []struct {
		name, tiers, tier, model string
	}{
		{"cached", "{cached: true}", "cached", `"gpt-4o`},
		{"static", "{name: answers, answers: ANSWERS}", "answers", ""},
		{"message", "{name: sorry, message: We are sorry.}", "sorry", ""},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", c.name, stream), func(t *testing.T) {
				f := fallingBack(t, allSampled, c.tiers, ", cache: {ttl: 1ms, stale_while_revalidate: off}")
				f.ask("when do you open?", stream)
				<-time.After(20 * time.Millisecond) // the cached answer is stale
				f.fails("gpt-4o")
				root := f.ask("when do you open?", stream)[0]
				has(t, root, map[string]string{
					"gen_ai.request.model": `"gpt-4o"`, "gen_ai.response.model": c.model, "gen_ai.usage.input_tokens": "int_value", "gen_ai.usage.output_tokens": "int_value",
					"weir.tier": `"` + c.tier + `"`, "weir.degraded": "true", "weir.class": `"ok"`, "error.type": "", "weir.kept": `"failed"`,
				})
				for _, key := range []string{"gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "weir.cost"} {
					if v := attrsOf(root)[key]; !strings.HasSuffix(v, ":0") && !strings.HasSuffix(v, "{}") {
						t.Errorf("%s: got %q, want 0", key, v)
					}
				}
				if root.Status.GetCode() == spans.Status_STATUS_CODE_ERROR || root.Status.GetMessage() != "" {
					t.Errorf("the call has the status %v, want that of its answer", root.Status)
				}
			})
		}
	}
}

// TestTraceOfFallbackThatBreaksOffFailed checks that a call has the result of its answer also if that is a failure.
func TestTraceOfFallbackThatBreaksOffFailed(t *testing.T) {
	f := fallingBack(t, notSampled, "{name: second, model: gpt-4o-mini}", "")
	f.fails("gpt-4o")
	f.sim.Fault(llmsim.Fault{Kind: llmsim.Cut, Model: "gpt-4o-mini", Where: llmsim.AfterContent, Events: 1})
	root := f.ask("tell me a longer story about rivers", true)[0]
	has(t, root, map[string]string{"gen_ai.response.model": `"gpt-4o-mini`, "weir.tier": `"second"`, "weir.class": `"failed"`})
	if root.Status.GetCode() != spans.Status_STATUS_CODE_ERROR {
		t.Errorf("the call has the status %v, want an error", root.Status)
	}
}

// TestTraceOfCallThatPrimaryRefusedIsThatOfItsAnswer checks a call whose first model weir's own limit refused.
func TestTraceOfCallThatPrimaryRefusedIsThatOfItsAnswer(t *testing.T) {
	f := fallingBack(t, notSampled, "{name: second, model: gpt-4o-mini, upstream: other}", "")
	f.sim.Fault(llmsim.Fault{Kind: llmsim.Throttle, Model: "gpt-4o", Hint: time.Hour})
	f.ask("hello", false)
	root := f.ask("hello", false)[0]
	has(t, root, map[string]string{"gen_ai.response.model": `"gpt-4o-mini`, "weir.cost": "double_value", "weir.tier": `"second"`, "weir.kept": `"refused"`, "weir.class": `"ok"`, "weir.reason": "", "error.type": ""})
	if root.Status.GetCode() == spans.Status_STATUS_CODE_ERROR {
		t.Errorf("the call has the status %v, want that of its answer", root.Status)
	}
}
