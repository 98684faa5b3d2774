package trace

import (
	"context"
	"net/http"

	"github.com/seed1158cd35/weir"
)

// attemptKey is the context key of the parent of calls: an Attempt, or the *Call of a Fallback.
type attemptKey struct{}

func attemptIn(ctx context.Context) (Attempt, bool) {
	switch in := ctx.Value(attemptKey{}).(type) {
	case Attempt:
		return in, true
	case *Call:
		return in.self(), true
	}
	return Attempt{}, false
}

// In returns a context within the attempt. Do, Func and Transport then add their calls and requests to the attempt's trace.
func (a Attempt) In(ctx context.Context) context.Context {
	if a.c == nil {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{}, a)
}

// within begins a call whose parent is the attempt in ctx. The attempt belongs to this program, so its early decision is trusted.
func (t *Tracer) within(ctx context.Context, about About) *Call {
	if t == nil {
		return nil
	}
	a, ok := attemptIn(ctx)
	if !ok {
		return t.Begin(Parent{}, about)
	}
	c := t.begin(Parent{Trace: a.c.trace, Span: a.span(), State: a.c.state}, about)
	c.sampled, c.local = a.c.sampled, true
	return c
}

// Do is weir.Do with tracing, for an upstream with the tracer's Events. The call belongs to the trace of the attempt in ctx, or
// begins a trace. Within a Fallback, the call is one of the possible answers.
func Do[T any](ctx context.Context, t *Tracer, u *weir.Upstream, c weir.Call, fn func(context.Context) (T, error)) (T, error) {
	if request, ok := ctx.Value(attemptKey{}).(*Call); ok {
		of := request.Part(u.Name())
		c.Note = of
		v, err := weir.Do(ctx, u, c, func(ctx context.Context) (T, error) { return fn(of.Next().In(ctx)) })
		if err == nil {
			request.AnsweredBy(of)
		}
		return v, err
	}
	of := t.within(ctx, About{Name: u.Name()})
	if of == nil {
		return weir.Do(ctx, u, c, fn)
	}
	c.Note = of
	defer of.End(Answer{}) // also if fn panics
	return weir.Do(ctx, u, c, func(ctx context.Context) (T, error) { return fn(of.Next().In(ctx)) })
}

// Func calls a function that uses no upstream, as a span. If fn returns an error, the span is kept as failed.
func Func[T any](ctx context.Context, t *Tracer, name string, fn func(context.Context) (T, error)) (v T, err error) {
	of := t.within(ctx, About{Name: name})
	defer func() { of.End(Answer{Err: err}) }()
	return fn(of.self().In(ctx))
}

// Fallback calls, as a span, a function that makes several calls with Do until one answers, for instance in the tiers of a
// cascade. If one of the calls or the function fails, all of the calls are kept, sampled or not. The span has the result of the
// call that answered.
func Fallback[T any](ctx context.Context, t *Tracer, name string, fn func(context.Context) (T, error)) (v T, err error) {
	of := t.within(ctx, About{Name: name})
	if of == nil {
		return fn(ctx)
	}
	defer func() { of.End(Answer{Err: err}) }()
	return fn(context.WithValue(ctx, attemptKey{}, of))
}

// self returns the call as an attempt, to be the parent of work within the call.
func (c *Call) self() Attempt { return Attempt{c: c} }

// A Transport adds the trace to requests whose context is within an attempt. It is safe for concurrent use.
type Transport struct {
	Base http.RoundTripper // nil means http.DefaultTransport
}

// RoundTrip sends a request.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	a, ok := attemptIn(r.Context())
	if !ok {
		return base.RoundTrip(r)
	}
	out := new(http.Request)
	*out = *r
	if out.Header = r.Header.Clone(); out.Header == nil {
		out.Header = make(http.Header, 1)
	}
	a.Header(out.Header)
	resp, err := base.RoundTrip(out)
	if err == nil {
		a.Answered(resp.StatusCode)
	}
	return resp, err
}
