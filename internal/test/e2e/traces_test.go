package e2e

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	spans "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/internal/test/served"
)

// A hearing records the trace headers of requests and responds as configured.
type hearing struct {
	mu     sync.Mutex
	heard  []http.Header
	answer func(n int) int // status of the nth response
}

func (h *hearing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, r.Header.Clone())
	w.WriteHeader(h.answer(len(h.heard)))
}

// tracing is a sidecar for such an upstream, with a receiver of its traces.
func tracing(t *testing.T, fields, upstream string, answer func(n int) int) (*hearing, *otlptest.Receiver, func(http.Header) *http.Response) {
	t.Helper()
	up := &hearing{answer: answer}
	s := httptest.NewServer(up)
	t.Cleanup(s.Close)
	r, url := otlptest.Receive(t)
	i := served.Begin(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\ntraces: {url: %q%s}\nupstreams: {up: {url: %q, retry: {base: 1ms}%s}}\n", url, fields, s.URL, upstream))
	return up, r, func(h http.Header) *http.Response {
		t.Helper()
		q, err := http.NewRequest(http.MethodGet, "http://"+i.Addr()+"/up/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header = h
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp
	}
}

func always(status int) func(int) int { return func(int) int { return status } }

const (
	theTrace = "0af7651916cd43dd8448eb211c80319c"
	theSpan  = "b7ad6b7169203331"
)

// A failed call is recorded, attempt by attempt, in its caller's trace. The upstream gets the trace header.
func TestAFailedCallIsTraced(t *testing.T) {
	up, r, call := tracing(t, ", share: off, each_second: off", "", func(n int) int {
		if n < 3 {
			return 500
		}
		return 200
	})
	resp := call(http.Header{"Traceparent": {"00-" + theTrace + "-" + theSpan + "-01"}, "Tracestate": {"a=b"}})
	all := r.WaitFor(t, 6)
	if len(all) != 6 {
		t.Fatalf("%d spans came, want the call, three attempts and two rests: %v", len(all), all)
	}
	root := all[0]
	for key, want := range map[string]string{
		"weir.kept": "failed", "weir.sampled": "late", "weir.upstream": "up", "weir.attempts": "3", "weir.class": "ok", "weir.id": resp.Header.Get("X-Correlation-Id"),
		"http.request.method": "GET", "http.response.status_code": "200",
	} {
		if got := otlptest.Text(root, key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if hex.EncodeToString(root.TraceId) != theTrace || hex.EncodeToString(root.ParentSpanId) != theSpan || root.TraceState != "a=b" || root.Kind != spans.Span_SPAN_KIND_SERVER {
		t.Errorf("the call: got %v, want it within the caller's span", root)
	}
	n := 0
	for _, s := range all[1:] {
		if string(s.ParentSpanId) != string(root.SpanId) || s.StartTimeUnixNano < root.StartTimeUnixNano || s.EndTimeUnixNano > root.EndTimeUnixNano || s.EndTimeUnixNano < s.StartTimeUnixNano {
			t.Errorf("%s lies outside the call: %v", s.Name, s)
		}
		if s.Kind != spans.Span_SPAN_KIND_CLIENT {
			continue
		}
		want := fmt.Sprintf("00-%s-%s-00", theTrace, hex.EncodeToString(s.SpanId)) // it was recorded late
		if got := up.heard[n].Get("Traceparent"); got != want || up.heard[n].Get("Tracestate") != "a=b" {
			t.Errorf("attempt %d: the upstream heard %q, want %q", n+1, got, want)
		}
		if got, want := otlptest.Text(s, "http.response.status_code"), []string{"500", "500", "200"}[n]; got != want {
			t.Errorf("attempt %d: status %q, want %q", n+1, got, want)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d spans of attempts, want 3", n)
	}
}

// A successful call is sampled early, and its upstream gets the decision. An untrusted caller's decision is ignored.
func TestWhoDecidesWhatIsKept(t *testing.T) {
	const said = "00-" + theTrace + "-" + theSpan
	for _, c := range []struct {
		name, fields, came string
		want               string // the flags that the upstream gets
	}{
		{"all are kept", ", share: 100%", said + "-01", "-01"},
		{"a stranger forces nothing", ", share: off, each_second: off", said + "-01", "-00"},
		{"a trusted caller does", ", share: off, each_second: off, trust: true", said + "-01", "-01"},
		{"anybody may say no", ", share: 100%", said + "-00", "-00"},
		{"one each second", ", share: off", "", "-01"},
	} {
		t.Run(c.name, func(t *testing.T) {
			up, r, call := tracing(t, c.fields, "", always(200))
			h := make(http.Header)
			if c.came != "" {
				h.Set("Traceparent", c.came)
			}
			call(h)
			got := up.heard[0].Get("Traceparent")
			if len(got) != len(said)+3 || got[len(said):] != c.want {
				t.Errorf("the upstream heard %q, want %s at its end", got, c.want)
			}
			if c.want == "-01" {
				if s := r.WaitFor(t, 2)[0]; otlptest.Text(s, "weir.kept") != "sampled" || otlptest.Text(s, "weir.sampled") != "" {
					t.Errorf("kept: got %v, want sampled, and not late", s)
				}
			}
		})
	}
}

// A malformed header is ignored, and a new trace begins.
func TestAMalformedTraceIsNone(t *testing.T) {
	for _, bad := range []string{"", "00-0-0-00", "ff-" + theTrace + "-" + theSpan + "-01", "00-" + theTrace + "-" + theSpan + "-01-x", "00-00000000000000000000000000000000-" + theSpan + "-01", "00-" + theTrace + "-0000000000000000-01"} {
		up, _, call := tracing(t, "", "", always(200))
		call(http.Header{"Traceparent": {bad}, "Tracestate": {"a=b"}})
		h := up.heard[0]
		if got := h.Get("Traceparent"); len(got) != 55 || got[3:35] == theTrace || h.Get("Tracestate") != "" {
			t.Errorf("%q: the upstream heard %q, %q; want a trace of its own, and no state", bad, got, h.Get("Tracestate"))
		}
	}
}

// Refused calls are also recorded, with the reason.
func TestARefusedCallIsTraced(t *testing.T) {
	_, r, call := tracing(t, ", share: off, each_second: off", ", limits: {all: 1/h}, max_wait: off", always(200))
	call(nil)
	if resp := call(nil); resp.StatusCode != http.StatusTooManyRequests {
		t.Fatalf("status %d, want 429", resp.StatusCode)
	}
	all := r.WaitFor(t, 2)
	for key, want := range map[string]string{"weir.kept": "refused", "weir.class": "refused", "weir.reason": "rate_limited", "weir.limit": "all", "http.response.status_code": "429"} {
		if got := otlptest.Text(all[0], key); got != want {
			t.Errorf("%s: got %q, want %q", key, got, want)
		}
	}
	if all[1].Name != "wait" || len(all) != 2 {
		t.Errorf("got %v, want the call and its wait, and no attempt", all)
	}
}

// X-Ray's header is continued and sent, if configured.
func TestXRaysHeader(t *testing.T) {
	const came = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
	up, _, call := tracing(t, ", xray: true, trust: true", "", always(200))
	call(http.Header{"X-Amzn-Trace-Id": {came}})
	h := up.heard[0]
	if got := h.Get("Traceparent"); len(got) != 55 || got[3:35] != "5759e988bd862e3fe1be46a994272793" || got[53:] != "01" {
		t.Errorf("traceparent: got %q, want it of the trace that X-Ray's header names", got)
	}
	got := h.Get("X-Amzn-Trace-Id")
	if want := "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=" + h.Get("Traceparent")[36:52] + ";Sampled=1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
