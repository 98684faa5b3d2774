package otlp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/observe/trace"
)

func exporter(t *testing.T, o HTTP) trace.Exporter {
	t.Helper()
	e, err := NewHTTP(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var whole = trace.Span{
	Trace: trace.ID{1, 2, 15: 3}, ID: trace.SpanID{4, 7: 5}, Parent: trace.SpanID{6, 7: 7}, State: "a=b",
	Name: "GET", Kind: trace.Client, Start: time.Unix(1, 2), End: time.Unix(3, 4), Failed: true, Message: "bro\xffken", Remote: true,
	Attrs: []trace.Attr{{Key: "text", Text: "v\xff"}, {Key: "number", Number: -7, Is: trace.IsNumber}},
}

// The collector's types decode the encoded request.
func TestTheCollectorReadsEachField(t *testing.T) {
	r, url := otlptest.Receive(t)
	e := exporter(t, HTTP{URL: url, Header: http.Header{"X-Token": {"t"}}, Resource: Resource{Service: "s", Version: "v", Instance: "i", Attrs: map[string]string{"k": "w"}}})
	if err := e.Export(t.Context(), []trace.Span{whole, {Name: strings.Repeat("x", 3<<20)}}); err != nil {
		t.Fatal(err)
	}
	got := r.Spans()
	if len(got) != 2 || len(got[1].Name) != 3<<20 {
		t.Fatalf("%d spans came, want 2, one of them very long", len(got))
	}
	s := got[0]
	if string(s.TraceId) != string(whole.Trace[:]) || string(s.SpanId) != string(whole.ID[:]) || string(s.ParentSpanId) != string(whole.Parent[:]) || s.TraceState != "a=b" {
		t.Errorf("ids: got %v", s)
	}
	if s.Name != "GET" || s.Kind.String() != "SPAN_KIND_CLIENT" || s.StartTimeUnixNano != 1_000_000_002 || s.EndTimeUnixNano != 3_000_000_004 {
		t.Errorf("name, kind and times: got %v", s)
	}
	if s.Status.GetCode().String() != "STATUS_CODE_ERROR" || s.Status.GetMessage() != "bro\uFFFDken" || s.Flags != 0x301 {
		t.Errorf("status %v, flags %x; want an error, and 301: sampled, and its parent is another program's", s.Status, s.Flags)
	}
	want := []*common.KeyValue{
		{Key: "text", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: "v\uFFFD"}}},
		{Key: "number", Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: -7}}},
	}
	for i, w := range want {
		if !proto.Equal(s.Attributes[i], w) {
			t.Errorf("attribute: got %v, want %v", s.Attributes[i], w)
		}
	}
	of := r.Requests()[0].ResourceSpans[0]
	names := make(map[string]string)
	for _, a := range of.Resource.Attributes {
		names[a.Key] = a.Value.GetStringValue()
	}
	if names["service.name"] != "s" || names["service.version"] != "v" || names["service.instance.id"] != "i" || names["k"] != "w" || of.SchemaUrl != trace.SchemaURL {
		t.Errorf("resource: got %v, schema %s", names, of.SchemaUrl)
	}
	if got := r.Headers()[0].Get("X-Token"); got != "t" {
		t.Errorf("header: got %q, want t", got)
	}
}

func TestWhichAnswersAreWorthAnotherAttempt(t *testing.T) {
	for _, c := range []struct {
		status int
		again  bool
	}{{400, false}, {401, false}, {404, false}, {413, false}, {429, true}, {500, false}, {502, true}, {503, true}, {504, true}, {302, false}} {
		r, url := otlptest.Receive(t)
		r.Answer = func() (int, http.Header, *collector.ExportTracePartialSuccess) {
			return c.status, http.Header{"Retry-After": {"7"}, "Location": {"/elsewhere"}}, nil
		}
		err := exporter(t, HTTP{URL: url}).Export(t.Context(), []trace.Span{whole})
		later, again := errors.AsType[*trace.LaterError](err)
		if err == nil || again != c.again {
			t.Errorf("status %d: got %v, again %v; want an error, again %v", c.status, err, again, c.again)
		}
		if again && later.After != 7*time.Second {
			t.Errorf("status %d: again after %v, want 7s", c.status, later.After)
		}
	}
}

func TestAReceiverMayTakeAPart(t *testing.T) {
	r, url := otlptest.Receive(t)
	r.Answer = func() (int, http.Header, *collector.ExportTracePartialSuccess) {
		return http.StatusOK, nil, &collector.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "too old"}
	}
	err := exporter(t, HTTP{URL: url}).Export(t.Context(), []trace.Span{whole, whole})
	if p, ok := errors.AsType[*trace.PartialError](err); !ok || p.Spans != 1 || !strings.Contains(p.Error(), "too old") {
		t.Errorf("got %v, want that 1 span was too old", err)
	}
}

func TestAReceiverThatIsAwayIsTriedAgain(t *testing.T) {
	e := exporter(t, HTTP{URL: "http://127.0.0.1:1/v1/traces?token=secret"})
	err := e.Export(context.Background(), []trace.Span{whole})
	if _, again := errors.AsType[*trace.LaterError](err); !again || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want one to be tried again, without its URL", err)
	}
}

func TestAURLThatCannotBeMeant(t *testing.T) {
	for _, url := range []string{"", "127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://user:secret@host/v1/traces"} {
		if _, err := NewHTTP(HTTP{URL: url}); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want an error without secrets", url, err)
		}
	}
}
