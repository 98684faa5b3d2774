package trace

import (
	"context"
	"net/http"

	"github.com/seed1158cd35/weir"
)

type attemptKey struct{}

// In is ctx within an attempt: what is begun in it by Do or Func belongs to the attempt's trace, and so does what is sent
// in it by a Transport.
func (a Attempt) In(ctx context.Context) context.Context {
	if a.c == nil {
		return ctx
	}
	return context.WithValue(ctx, attemptKey{}, a)
}

// within is the parent of what is begun in ctx. It is this program's own, so its early decision is believed.
func (t *Tracer) within(ctx context.Context, about About) *Call {
	if t == nil {
		return nil
	}
	a, ok := ctx.Value(attemptKey{}).(Attempt)
	if !ok {
		return t.Begin(Parent{}, about)
	}
	c := t.begin(Parent{Trace: a.c.trace, Span: a.span(), State: a.c.state}, about)
	c.sampled, c.local = a.c.sampled, true
	return c
}

// Do is weir.Do of a call that is traced: the upstream's Events are the tracer's. It belongs to the trace of the attempt
// that ctx is within, or begins one.
func Do[T any](ctx context.Context, t *Tracer, u *weir.Upstream, c weir.Call, fn func(context.Context) (T, error)) (T, error) {
	of := t.within(ctx, About{Name: u.Name()})
	if of == nil {
		return weir.Do(ctx, u, c, fn)
	}
	c.Note = of
	defer of.End(Answer{}) // also if fn panics
	return weir.Do(ctx, u, c, func(ctx context.Context) (T, error) { return fn(of.Next().In(ctx)) })
}

// Func calls any function, which no upstream has to do with, as a span: one that returns an error is kept as failed.
func Func[T any](ctx context.Context, t *Tracer, name string, fn func(context.Context) (T, error)) (v T, err error) {
	of := t.within(ctx, About{Name: name})
	defer func() { of.End(Answer{Err: err}) }()
	return fn(of.self().In(ctx))
}

// self is the call as if it were its own attempt: the parent of what is done in it.
func (c *Call) self() Attempt { return Attempt{c: c} }

// A Transport tells upstreams which trace a request belongs to, if it is sent in the context of an attempt.
type Transport struct {
	Base http.RoundTripper // nil means http.DefaultTransport
}

// RoundTrip sends a request.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.Base
	if base == nil {
		base = http.DefaultTransport
	}
	a, ok := r.Context().Value(attemptKey{}).(Attempt)
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
