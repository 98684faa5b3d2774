// Package otlptest is a receiver of traces that uses the collector's types.
package otlptest

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// A Receiver receives spans as the collector does. It is safe for concurrent use.
type Receiver struct {
	collector.UnimplementedTraceServiceServer
	Answer func() (status int, header http.Header, partial *collector.ExportTracePartialSuccess)

	mu       sync.Mutex
	requests []*collector.ExportTraceServiceRequest
	headers  []http.Header
	came     chan struct{}
}

// Spans returns the received spans.
func (r *Receiver) Spans() (all []*spans.Span) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.requests {
		for _, of := range q.ResourceSpans {
			for _, s := range of.ScopeSpans {
				all = append(all, s.Spans...)
			}
		}
	}
	return all
}

func (r *Receiver) take(q *collector.ExportTraceServiceRequest, h http.Header) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests, r.headers = append(r.requests, q), append(r.headers, h)
	select {
	case r.came <- struct{}{}:
	default:
	}
}

// Requests returns the received requests, and Headers their headers.
func (r *Receiver) Requests() []*collector.ExportTraceServiceRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests
}

func (r *Receiver) Headers() []http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.headers
}

// WaitFor waits for n spans and returns all.
func (r *Receiver) WaitFor(t testing.TB, n int) []*spans.Span {
	t.Helper()
	for over := time.After(30 * time.Second); ; {
		if all := r.Spans(); len(all) >= n {
			return all
		}
		select {
		case <-r.came:
		case <-over:
			t.Fatalf("%d spans came, want %d", len(r.Spans()), n)
		}
	}
}

// Text returns a span's attribute as text.
func Text(s *spans.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			if v, ok := a.Value.Value.(*common.AnyValue_IntValue); ok {
				return strconv.FormatInt(v.IntValue, 10)
			}
			return a.Value.GetStringValue()
		}
	}
	return ""
}

// Export receives spans by gRPC.
func (r *Receiver) Export(_ context.Context, q *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.take(q, nil)
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP receives spans by HTTP.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	var partial *collector.ExportTracePartialSuccess
	if r.Answer != nil {
		status, header, some := r.Answer()
		for k, v := range header {
			w.Header()[k] = v
		}
		if partial = some; status != http.StatusOK {
			w.WriteHeader(status)
			return
		}
	}
	z, err := gzip.NewReader(in.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(z)
	q := new(collector.ExportTraceServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, q)
	}
	if err != nil || in.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "want protobuf", http.StatusBadRequest)
		return
	}
	r.take(q, in.Header)
	out, _ := proto.Marshal(&collector.ExportTraceServiceResponse{PartialSuccess: partial})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(out)
}

// New returns a receiver without a server.
func New() *Receiver { return &Receiver{came: make(chan struct{}, 1)} }

// Receive starts a receiver over HTTP and returns its URL.
func Receive(t testing.TB) (*Receiver, string) {
	t.Helper()
	r := New()
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	return r, s.URL + "/v1/traces"
}
