package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/outcome"
)

// A badAnswer is the error for an unsuccessful response.
type badAnswer struct {
	resp    *http.Response
	outcome outcome.Outcome
	own     bool // the request was sent with weir's own key
}

func (e *badAnswer) Error() string {
	return fmt.Sprintf("answered with %d %s", e.resp.StatusCode, e.outcome.Code)
}

func (e *badAnswer) Outcome() outcome.Outcome { return e.outcome }

// Is makes the cascade try another tier for a model that this upstream does not have.
func (e *badAnswer) Is(target error) bool { return target == cascade.ErrElsewhere && e.absent() }

// absent reports whether the upstream does not have the model. A 404 for a recognized model call cannot mean an unknown
// path.
func (e *badAnswer) absent() bool {
	return e.outcome.Class == outcome.Rejected && (e.resp.StatusCode == http.StatusNotFound || e.outcome.Code == "model_not_found" || e.own && forbidden(e.resp, e.outcome))
}

// forbidden reports whether weir's own key may not use the requested model. The tier stays open, because the key may be
// allowed to use other models.
func forbidden(resp *http.Response, o outcome.Outcome) bool {
	return resp.StatusCode == http.StatusForbidden && (o.Code == "model_not_found" || o.Code == "AccessDeniedException" || o.Code == "permission_error")
}

var _ outcome.Classifier = (*badAnswer)(nil)

// An until is a context that reports a deadline before its end. A call does not queue past the deadline, but the context
// stays valid afterwards.
type until struct {
	context.Context
	at time.Time
}

func (u *until) Deadline() (time.Time, bool) { return u.at, true }

// A tierError is the error for a response whose body was closed or was useless.
type tierError struct {
	text    string
	outcome outcome.Outcome
	why     error // the error that ended the body; nil if irrelevant
}

func (e *tierError) Error() string            { return e.text }
func (e *tierError) Outcome() outcome.Outcome { return e.outcome }
func (e *tierError) Unwrap() error            { return e.why }

// trusts reports whether the caller's credentials may be sent to another upstream. They may if both upstreams are at the
// same provider. It is irrelevant for an upstream with its own key.
func (d *Dialect) trusts(upstream string) bool {
	if d.o.Origin == nil {
		return false
	}
	own, _ := d.o.Origin(d.o.Name)
	other, _ := d.o.Origin(upstream)
	return own == other
}

// ask sends a request. The tier's deadline and cancellation apply only until the response starts. A started response
// continues after them. An unsuccessful response also stays readable, because it may become the final response.
func (c *conduct) ask(ctx context.Context, to httpx.Request) (*http.Response, error) {
	kept := c.r.Context()
	var end context.CancelCauseFunc // nil if the tier ends only with the request
	stop := func() bool { return ctx.Err() == nil }
	if ctx.Done() != kept.Done() || c.progress.tier != "" {
		kept, end = context.WithCancelCause(kept)
		stop = context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	}
	if all := c.x.d.o.Cascade; all != nil && c.progress.tier != "" {
		opened := &weir.Refusal{Upstream: c.x.d.o.Name, Operation: c.x.route.Operation, Reason: weir.CircuitOpen, RetryAfter: time.Second}
		defer all.OnOpen(c.progress.tier, func() {
			if c.progress.open.Load() == nil { // the call is waiting in a queue or for a retry: let a lower tier answer now
				end(opened)
			}
		})()
		if b := all.Breaker(c.progress.tier); b != nil && b.Look(all.Now()).Phase == breaker.Open { // the breaker opened after the call was admitted
			end(opened)
		}
	}
	if c.probe {
		kept = weir.Once(kept)
	}
	if at, ok := ctx.Deadline(); ok {
		kept = &until{kept, at}
	}
	c.progress.by.Store(nil)
	resp, trace, err := c.send(c.progress.in(kept), to)
	if stopped := stop(); err == nil && !stopped {
		_ = resp.Body.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		if end != nil {
			end(nil)
		}
		return nil, err
	}
	if end != nil {
		resp.Body = outside(&released{resp.Body, end}, resp.Body)
	}
	c.announceBudgets(resp.Header, trace.Budgets)
	keyed := c.keyedBy(to.Upstream)
	switch o := seen(resp, trace.Outcome, keyed); {
	case o.Class == outcome.OK:
		return resp, nil
	case c.progress.worthless != nil:
		_ = resp.Body.Close()
		return nil, &tierError{"the response had status 200 but could not be read: " + o.Code, o, c.progress.worthless}
	default:
		return resp, &badAnswer{resp, o, keyed}
	}
}

// keyedBy reports whether the last response was requested with weir's own key.
func (c *conduct) keyedBy(upstream string) bool {
	if x := c.progress.by.Load(); x != nil {
		return x.lends()
	}
	return c.x.d.keyed(upstream)
}

// lends reports whether the request is sent with weir's own key. A signer may forward a request that already has a key
// or a signature.
func (x *exchange) lends() bool {
	if s, ok := x.inner.(interface{ AsIs() bool }); ok && s.AsIs() {
		return false
	}
	return x.d.o.Key != "" || x.inner != nil
}

// seen returns an outcome from the cascade's view. If weir's own key is invalid or its account is used up, the tier has
// failed and the caller is not at fault. A hint about a caller's own key, whose pool is paused, must not close the tier
// for all callers.
func seen(resp *http.Response, o outcome.Outcome, keyed bool) outcome.Outcome {
	if !keyed {
		o.Hint = outcome.Hint{Advice: o.Hint.Advice, Limits: o.Hint.Limits}
		return o
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		if o.Class == outcome.Rejected && !forbidden(resp, o) {
			o.Class = outcome.Failed
		}
	}
	if o.Code == "ServiceQuotaExceededException" {
		o.Class = outcome.Failed
	}
	return o
}

// keyed reports whether requests to an upstream are sent with weir's own key. "" is the dialect's upstream.
func (d *Dialect) keyed(upstream string) bool {
	if upstream == "" || upstream == d.o.Name {
		return d.o.Key != "" || d.o.Inner != nil
	}
	if d.o.Origin == nil {
		return false
	}
	_, own := d.o.Origin(upstream)
	return own
}

// A released is a body that releases the tier's context when it is closed.
type released struct {
	io.ReadCloser
	release context.CancelCauseFunc
}

func (b *released) Close() error {
	err := b.ReadCloser.Close()
	b.release(nil)
	return err
}

// outside returns body b with the Write method of inner, if it has one. A connection has Write after a protocol change.
func outside(b, inner io.ReadCloser) io.ReadCloser {
	if w, ok := inner.(io.Writer); ok {
		return struct {
			io.ReadCloser
			io.Writer
		}{b, w}
	}
	return b
}
