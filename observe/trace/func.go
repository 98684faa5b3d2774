package trace

import (
	"context"
	"net/http"

	"github.com/seed1158cd35/weir"
)

// attemptKey has what calls begin within: an Attempt, or the *Call of a Fallback.
type attemptKey struct{}

// attemptIn is the attempt that ctx is within.
func attemptIn(ctx context.Context) (Attempt, bool) {
	switch in := ctx.Value(attemptKey{}).(type) {
	case Attempt:
		return in, true
	case *Call:
		return in.self(), true
	}
	return Attempt{}, false
}

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
	a, ok := attemptIn(ctx)
	if !ok {
		return t.Begin(Parent{}, about)
	}
	c := t.begin(Parent{Trace: a.c.trace, Span: a.span(), State: a.c.state}, about)
	c.sampled, c.local = a.c.sampled, true
	return c
}

// Do is weir.Do of a call that is traced: the upstream's Events are the tracer's. It belongs to the trace of the attempt
// that ctx is within, or begins one. Within a Fallback it is one of the calls that may answer.
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

// Func calls any function, which no upstream has to do with, as a span: one that returns an error is kept as failed.
func Func[T any](ctx context.Context, t *Tracer, name string, fn func(context.Context) (T, error)) (v T, err error) {
	of := t.within(ctx, About{Name: name})
	defer func() { of.End(Answer{Err: err}) }()
	return fn(of.self().In(ctx))
}

// Fallback calls a function that makes several calls with Do until one answers, such as those of the tiers of a cascade, as a span. All of
// them are kept together, sampled or not, if one of them or the function fails. The span has the result of the call that answered.
func Fallback[T any](ctx context.Context, t *Tracer, name string, fn func(context.Context) (T, error)) (v T, err error) {
	of := t.within(ctx, About{Name: name})
	if of == nil {
		return fn(ctx)
	}
	defer func() { of.End(Answer{Err: err}) }()
	return fn(context.WithValue(ctx, attemptKey{}, of))
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
