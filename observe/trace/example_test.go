package trace_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/observe/trace"
)

// printer prints spans. observe/trace/otlp sends them.
type printer struct{}

func (printer) Export(_ context.Context, spans []trace.Span) error {
	for _, s := range spans {
		fmt.Printf("%s, failed: %t\n", s.Name, s.Failed)
	}
	return nil
}

// A job that calls an upstream is one trace: the job, its call, the attempt, and the server's spans, which continue the trace in
// the header.
func ExampleFunc() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the server hears of a trace:", r.Header.Get("traceparent") != "")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	client := &http.Client{Transport: trace.Transport{}}
	ctx := context.Background()

	tracer := trace.New(trace.Options{To: printer{}})
	api, err := weir.New("api", weir.Policy{}, weir.Options{Events: tracer.Events()})
	if err != nil {
		panic(err)
	}
	_, _ = trace.Func(ctx, tracer, "nightly", func(ctx context.Context) (int, error) {
		return trace.Do(ctx, tracer, api, weir.Call{}, func(ctx context.Context) (int, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				return 0, err
			}
			resp, err := client.Do(r)
			if err != nil {
				return 0, err
			}
			_ = resp.Body.Close()
			return 0, errors.New("there is no such thing")
		})
	})
	tracer.Close(ctx)
	// Unordered output:
	// the server hears of a trace: true
	// nightly, failed: true
	// api, failed: true
	// api default, failed: true
}
