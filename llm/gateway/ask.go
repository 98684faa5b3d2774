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

// A badAnswer is an answer that is no success.
type badAnswer struct {
	resp    *http.Response
	outcome outcome.Outcome
	own     bool // it was asked for with a key of weir's own
}

func (e *badAnswer) Error() string {
	return fmt.Sprintf("answered with %d %s", e.resp.StatusCode, e.outcome.Code)
}

func (e *badAnswer) Outcome() outcome.Outcome { return e.outcome }

// Is has a model that is not known here looked for at another tier.
func (e *badAnswer) Is(target error) bool { return target == cascade.ErrElsewhere && e.absent() }

// absent reports whether the upstream does not know the model. Of what else it may not
// know, a path, no recognized call of a model speaks.
func (e *badAnswer) absent() bool {
	return e.outcome.Class == outcome.Rejected && (e.resp.StatusCode == http.StatusNotFound || e.outcome.Code == "model_not_found" || e.own && forbidden(e.resp, e.outcome))
}

// forbidden reports whether weir's own key may not use the model that the caller has named. The
// key may use others, and no caller takes them from everybody.
func forbidden(resp *http.Response, o outcome.Outcome) bool {
	return resp.StatusCode == http.StatusForbidden && (o.Code == "model_not_found" || o.Code == "AccessDeniedException" || o.Code == "permission_error")
}

var _ outcome.Classifier = (*badAnswer)(nil)

// until is a context that says when it will end although it is kept for longer: nobody
// waits for a turn that comes too late.
type until struct {
	context.Context
	at time.Time
}

func (u *until) Deadline() (time.Time, bool) { return u.at, true }

// A tierError is a bad answer whose body is gone, or was worth nothing.
type tierError struct {
	text    string
	outcome outcome.Outcome
	why     error // how the body ended; nil if that does not matter
}

func (e *tierError) Error() string            { return e.text }
func (e *tierError) Outcome() outcome.Outcome { return e.outcome }
func (e *tierError) Unwrap() error            { return e.why }

// trusts reports whether another upstream may be sent the caller's credentials: it is of
// the same provider. It does not matter if it has a key of its own.
func (d *Dialect) trusts(upstream string) bool {
	if d.o.Origin == nil {
		return false
	}
	own, _ := d.o.Origin(d.o.Name)
	other, _ := d.o.Origin(upstream)
	return own == other
}

// ask sends a request. The time of the tier, and then its end, hold until it is answered:
// what has begun goes on, and what is no success may be all there is in the end.
func (c *conduct) ask(ctx context.Context, to httpx.Request) (*http.Response, error) {
	kept := c.r.Context()
	var end context.CancelCauseFunc // nil if the tier has no other end than the request
	stop := func() bool { return ctx.Err() == nil }
	if ctx.Done() != kept.Done() || c.progress.tier != "" {
		kept, end = context.WithCancelCause(kept)
		stop = context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	}
	if all := c.x.d.o.Cascade; all != nil && c.progress.tier != "" {
		opened := &weir.Refusal{Upstream: c.x.d.o.Name, Operation: c.x.route.Operation, Reason: weir.CircuitOpen, RetryAfter: time.Second}
		defer all.OnOpen(c.progress.tier, func() {
			if c.progress.open.Load() == nil { // it waits for its turn or for its retry: a tier below answers now
				end(opened)
			}
		})()
		if b := all.Breaker(c.progress.tier); b != nil && b.Look(all.Now()).Phase == breaker.Open { // since it was admitted
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

// keyedBy reports whether what was answered last was asked for with a key of weir's own.
func (c *conduct) keyedBy(upstream string) bool {
	if x := c.progress.by.Load(); x != nil {
		return x.lends()
	}
	return c.x.d.keyed(upstream)
}

// lends reports whether the request goes with a key of weir's own: a signer may send on what
// has a key or a signature.
func (x *exchange) lends() bool {
	if s, ok := x.inner.(interface{ AsIs() bool }); ok && s.AsIs() {
		return false
	}
	return x.d.o.Key != "" || x.inner != nil
}

// seen is an outcome as the cascade sees it. A key of weir's own that is not valid, or whose
// account is at its end, is no fault of the caller. And what a hint says of a caller's own
// key, whose pool is paused, is no reason to take the tier from everybody.
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

// keyed reports whether requests are sent to an upstream with a key of weir's own; ""
// is the dialect's.
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

// released is a body whose end releases the context of the tier.
type released struct {
	io.ReadCloser
	release context.CancelCauseFunc
}

func (b *released) Close() error {
	err := b.ReadCloser.Close()
	b.release(nil)
	return err
}

// outside is a body around another one, which can be written to if that can: a connection
// that has changed its protocol.
func outside(b, inner io.ReadCloser) io.ReadCloser {
	if w, ok := inner.(io.Writer); ok {
		return struct {
			io.ReadCloser
			io.Writer
		}{b, w}
	}
	return b
}
