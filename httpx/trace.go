package httpx

import (
	"context"

	"github.com/seed1158cd35/weir"
)

type traceKey struct{}

// WithTrace is ctx with a trace that Transport fills in when the call is over.
func WithTrace(ctx context.Context, t *weir.Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

// TraceFor answers the Value method of a context that keeps a trace itself,
// instead of by WithTrace: it is t if that is what the key asks for.
func TraceFor(key any, t *weir.Trace) (*weir.Trace, bool) {
	if key == (traceKey{}) {
		return t, true
	}
	return nil, false
}
