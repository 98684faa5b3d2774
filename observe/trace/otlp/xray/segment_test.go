package xray

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/seed1158cd35/weir/observe/trace"
)

// rules are what the published schema of segments, version 1.0.0, and the developer guide ask of a document, as far as weir
// writes one. A cause is a list of exceptions, each with an id: of one version of the schema it is said that it asks for
// "skipped", too, which the guide does not.
const rules = `{
	"$ref": "#/$defs/segment", "required": ["trace_id"],
	"$defs": {"segment": {
		"type": "object", "required": ["name", "id", "start_time", "end_time"], "additionalProperties": false,
		"properties": {
			"name": {"type": "string", "pattern": "^[\\p{L}\\p{Z}\\p{N}_.:/%&#=+\\\\\\-@]{1,200}$"},
			"id": {"type": "string", "pattern": "^[0-9a-f]{16}$"}, "parent_id": {"type": "string", "pattern": "^[0-9a-f]{16}$"},
			"trace_id": {"type": "string", "pattern": "^1-[0-9a-f]{8}-[0-9a-f]{24}$"},
			"start_time": {"type": "number"}, "end_time": {"type": "number"},
			"type": {"const": "subsegment"}, "namespace": {"enum": ["remote", "aws"]},
			"error": {"type": "boolean"}, "throttle": {"type": "boolean"}, "fault": {"type": "boolean"},
			"cause": {"type": "object", "properties": {"exceptions": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {
				"id": {"type": "string", "minLength": 16, "maxLength": 16}, "message": {"type": "string"}, "type": {"type": "string"}, "remote": {"type": "boolean"}}}}}},
			"annotations": {"type": "object", "maxProperties": 50, "additionalProperties": false, "patternProperties": {"^[a-zA-Z0-9_]{1,500}$": {"type": ["string", "number", "boolean"], "maxLength": 1000}}},
			"metadata": {"type": "object", "additionalProperties": {"type": "object"}},
			"http": {"type": "object", "properties": {
				"request": {"type": "object", "properties": {"method": {"type": "string", "maxLength": 250}}},
				"response": {"type": "object", "properties": {"status": {"type": "number"}}}}},
			"subsegments": {"type": "array", "items": {"$ref": "#/$defs/segment"}}
		},
		"if": {"properties": {"throttle": {"const": true}}, "required": ["throttle"]}, "then": {"required": ["error"]}
	}}}`

func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(rules))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("segment.json", parsed); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("segment.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call is a request to a model: its first tier was throttled and the second answered.
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

// What X-Ray is told of a request: all annotations and metadata, by the names that dashboards and queries ask for.
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

// heard is a daemon that keeps what comes.
func heard(t *testing.T) (net.PacketConn, trace.Exporter) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	e, err := NewDaemon(Daemon{Address: c.LocalAddr().String(), Service: "the <shop>"})
	if err != nil {
		t.Fatal(err)
	}
	return c, e
}

// next is the next document that came.
func next(t *testing.T, c net.PacketConn, by *jsonschema.Schema) (s segmentSaid) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	b := make([]byte, 1<<16)
	n, _, err := c.ReadFrom(b)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := bytes.Cut(b[:n], []byte("\n"))
	if string(first) != `{"format": "json", "version": 1}` {
		t.Fatalf("a datagram begins with %q", first)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(rest))
	if err != nil {
		t.Fatal(err)
	}
	if err := by.Validate(v); err != nil {
		t.Errorf("%v in %s", err, rest)
	}
	if err := json.Unmarshal(rest, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

type segmentSaid struct {
	Name, ID, Type, Namespace string
	TraceID                   string  `json:"trace_id"`
	ParentID                  string  `json:"parent_id"`
	Start                     float64 `json:"start_time"`
	Error, Throttle, Fault    bool
	Annotations               map[string]any
	Subsegments               []segmentSaid
}

// A segment is as the schema has it, with all that is beneath it in its place.
func TestSegmentsAreAsTheSchemaSays(t *testing.T) {
	c, e := heard(t)
	all := append(call(), call()...)
	all[6].Failed, all[6].Attrs[8].Number = true, 503
	if err := e.Export(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	s := schemaOf(t)
	got := next(t, c, s)
	if got.Name != "the shop" || got.TraceID != "1-6553f100-000000000000000000000001" || got.ParentID != "0900000000000009" || got.Start != 1_700_000_000.25 || got.Annotations["is_throttle"] != true || got.Fault {
		t.Errorf("got %+v", got)
	}
	if len(got.Subsegments) != 4 || got.Subsegments[2].Namespace != "remote" || !got.Subsegments[2].Throttle || !got.Subsegments[2].Error || got.Subsegments[2].Fault || len(got.Subsegments[3].Subsegments) != 1 {
		t.Errorf("beneath it: %+v", got.Subsegments)
	}
	if second := next(t, c, s); !second.Fault || second.Throttle {
		t.Errorf("a status of 503: got %+v, want a fault", second)
	}
}

// What is too long for one datagram comes in several, each beneath its own; what is too long alone is counted.
func TestALongSegmentComesInParts(t *testing.T) {
	c, e := heard(t)
	spans := call()
	for i := range 120 {
		s := spans[1]
		s.ID, s.Name, s.Message, s.Failed = trace.SpanID{0x90, 7: byte(i)}, fmt.Sprintf("step %d", i), strings.Repeat("m", 900), true
		spans = append(spans, s)
	}
	s := schemaOf(t)
	sent := make(chan error, 1)
	go func() { sent <- e.Export(t.Context(), spans) }()
	top := next(t, c, s)
	whole := len(top.Subsegments)
	if whole < 40 || top.Type != "" {
		t.Fatalf("the first has %d beneath it, want as many as there is room for", whole)
	}
	for n := whole; n < 124; n++ {
		if part := next(t, c, s); part.Type != "subsegment" || part.TraceID != top.TraceID || part.ParentID != top.ID {
			t.Fatalf("part %d: got %+v, want a subsegment of the first", n, part)
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	long := call()[:1]
	long[0].Attrs = long[0].Attrs[:len(long[0].Attrs):len(long[0].Attrs)]
	for i := range 80 {
		long[0].Attrs = append(long[0].Attrs, trace.Text(fmt.Sprintf("weir.%d", i), strings.Repeat("v", 1000)))
	}
	if err := e.Export(t.Context(), long); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v, want that it is too long", err)
	}
}

// A daemon that is not there loses what is sent, or has it sent again, and nothing else.
func TestADaemonThatIsAway(t *testing.T) {
	c, e := heard(t)
	_ = c.Close()
	again := false
	for range 50 {
		if err := e.Export(t.Context(), call()); err != nil {
			if _, again = err.(*trace.LaterError); !again { //nolint:errorlint // no error wraps it
				t.Fatalf("got %v, want one to be tried again", err)
			}
			break
		}
	}
	if !again {
		t.Error("nobody noticed that there is no daemon")
	}
}
