package httpx

import (
	"context"

	"github.com/seed1158cd35/weir"
)

type traceKey struct{}

// WithTrace returns a context with a trace that Transport fills in at the end of the call.
func WithTrace(ctx context.Context, t *weir.Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceFor helps a context that stores a trace in a field to implement Value. It returns t if key asks for the trace.
func TraceFor(key any, t *weir.Trace) (*weir.Trace, bool) {
	if key == (traceKey{}) {
		return t, true
	}
	return nil, false
}
