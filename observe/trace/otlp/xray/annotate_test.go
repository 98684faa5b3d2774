package xray

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/observe/trace"
)

// call is a model call whose first tier was throttled and whose second tier answered.
func call(more ...trace.Span) []trace.Span {
	at := time.Unix(1_700_000_000, 250_000_000)
	id := trace.ID{0x65, 0x53, 0xf1, 0x00, 15: 1}
	root := trace.SpanID{0x80, 7: 1}
	under := func(n byte, name string, kind trace.Kind, attrs ...trace.Attr) trace.Span {
		s := trace.Span{Trace: id, ID: trace.SpanID{0x80, 7: n}, Parent: root, Name: name, Kind: kind, Start: at.Add(time.Millisecond), End: at.Add(40 * time.Millisecond), Attrs: attrs}
		s.Failed = s.Get(trace.AttrErrorType).Text != ""
		return s
	}
	second := under(5, "openai", trace.Internal, trace.Text(trace.AttrAIModel, "gpt-4o-mini"), trace.Number(trace.AttrAIInput, 10), trace.Number(trace.AttrAIOutput, 20), trace.Float(trace.AttrCost, 0.25))
	sent := under(6, "POST", trace.Client, trace.Text(trace.AttrUpstream, "openai"), trace.Number(trace.AttrStatus, 200))
	sent.Parent = second.ID
	return append([]trace.Span{
		{Trace: id, ID: root, Parent: trace.SpanID{9, 7: 9}, Name: "POST openai", Kind: trace.Server, Start: at, End: at.Add(50 * time.Millisecond), Message: "gave up", Attrs: []trace.Attr{
			trace.Text(trace.AttrKept, "throttled"), trace.Text(trace.AttrAIModel, "gpt-4o"), trace.Text(trace.AttrTier, "second"), trace.Text(trace.AttrCache, "miss"),
			trace.Text(trace.AttrClass, "ok"), trace.Text(trace.AttrUser, "sha256:00"), trace.Text(trace.AttrOperation, "chat"), trace.Text(trace.AttrRoute, "/openai/"), trace.Number(trace.AttrStatus, 200),
		}},
		under(2, "wait", trace.Internal),
		under(3, "cache", trace.Internal, trace.Text(trace.AttrCache, "miss")),
		under(4, "POST", trace.Client, trace.Text(trace.AttrUpstream, "openai"), trace.Text(trace.AttrClass, "throttled"), trace.Number(trace.AttrStatus, 429), trace.Text(trace.AttrErrorType, "429")),
		second, sent,
	}, more...)
}

// The annotations and metadata of a request have the names that dashboards and queries use.
func TestAnnotationsAndMetadata(t *testing.T) {
	spans := call()
	annotate(spans, "shop")
	root := spans[0]
	for _, want := range []trace.Attr{
		trace.Text("model_id", "gpt-4o-mini"), trace.Text("fallback_tier", "second"), trace.Bool("cache_hit", false), trace.Text("error_code", "429"), trace.Bool("is_throttle", true),
		trace.Text("status", "ok"), trace.Text("user_id", "sha256:00"), trace.Text("operation", "chat"), trace.Text("service", "shop"), trace.Text("route", "/openai/"),
	} {
		if got := root.Get(want.Key); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %+v, want %+v", want.Key, got, want)
		}
	}
	if got := strings.Join(root.Get(annotationsKey).Texts, " "); got != "model_id fallback_tier cache_hit error_code is_throttle status user_id operation service route" {
		t.Errorf("annotations: got %q", got)
	}
	if got, want := root.Get(metadataKey).Text, `{"fm_usage":{"estimated_cost_usd":0.25,"input_tokens":10,"output_tokens":20},"latency_ms":50}`; got != want {
		t.Errorf("metadata: got %s, want %s", got, want)
	}
	names := []string{"POST openai", "rate limit check", "cache", "model call", "openai", "model call"}
	for i, want := range names {
		if spans[i].Name != want {
			t.Errorf("span %d: got %q, want %q", i, spans[i].Name, want)
		}
	}
	failed := call()
	failed[0].Failed = true
	annotate(failed, "shop")
	if got := failed[0].Get(metadataKey).Text; !strings.Contains(got, `"errors":{"error_message":"gave up"}`) {
		t.Errorf("metadata of a failure: got %s", got)
	}
}
