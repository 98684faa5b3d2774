package otlp

import (
	"context"
	"sync"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

type failed struct{}

func (failed) Error() string            { return "failed" }
func (failed) Outcome() outcome.Outcome { return outcome.Outcome{Class: outcome.Failed, Code: "E1"} }

// All failing calls are exported, at full speed, while the receiver accepts them.
func TestNoFailureIsLost(t *testing.T) {
	r, url := otlptest.Receive(t)
	tracer := trace.New(trace.Options{To: exporter(t, HTTP{URL: url})})
	u, err := weir.New("api", weir.Policy{Retry: retry.Config{Attempts: 1}, Breaker: breaker.Config{Off: true}}, weir.Options{Events: tracer.Events()})
	if err != nil {
		t.Fatal(err)
	}
	const callers, calls = 8, 5000
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range calls {
				_, _ = weir.Do(t.Context(), u, weir.Call{ID: "1z4qeq0q5rsr7"}, func(context.Context) (int, error) { return 0, failed{} })
			}
		})
	}
	wg.Wait()
	tracer.Close(t.Context())
	ids := make(map[string]bool)
	for _, s := range r.Spans() {
		ids[string(s.TraceId)] = true
	}
	if s := tracer.Stats(); len(ids) != callers*calls || s.Dropped[trace.Full] != 0 {
		t.Errorf("%d traces came of %d, %v", len(ids), callers*calls, s)
	}
}
