package httpx

import (
	"context"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

type traceKey struct{}

// WithTrace returns a context with a trace that Transport fills in at the end of the call.
func WithTrace(ctx context.Context, t *weir.Trace) context.Context {
	return context.WithValue(ctx, traceKey{}, t)
}

type endingKey struct{}

// An Ending is how the body of a response ended.
type Ending struct {
	Outcome outcome.Outcome // of the attempt; zero if no body has begun
	Whole   bool            // all of the body arrived: if it failed, it reports an error itself
}

// WithEnding returns a context with an Ending that Transport fills in at the end of a response's body, or when the body is closed.
func WithEnding(ctx context.Context, e *Ending) context.Context {
	return context.WithValue(ctx, endingKey{}, e)
}

// TraceFor helps a context that stores a trace in a field to implement Value. It returns t if key asks for the trace.
func TraceFor(key any, t *weir.Trace) (*weir.Trace, bool) {
	if key == (traceKey{}) {
		return t, true
	}
	return nil, false
}
