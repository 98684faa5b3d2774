package llmdialect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/answers"
	"github.com/seed1158cd35/weir/cache"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/proxy"
)

// A badAnswer is an answer that is no success.
type badAnswer struct {
	resp    *http.Response
	outcome outcome.Outcome
}

func (e *badAnswer) Error() string {
	return fmt.Sprintf("answered with %d %s", e.resp.StatusCode, e.outcome.Code)
}

func (e *badAnswer) Outcome() outcome.Outcome { return e.outcome }

var _ outcome.Classifier = (*badAnswer)(nil)

// fall asks the tiers of the cascade, one after the other.
func (c *conduct) fall() (*http.Response, error) {
	res, err := cascade.Run(c.r.Context(), c.x.d.o.Cascade, c.tier)
	if err == nil {
		c.forget(res.Value)
		c.announce(res.Value, res)
		return res.Value, nil
	}
	return c.giveUp(err) // also of what is the caller's own fault
}

// giveUp is what the upstream itself said, as no tier has an answer.
func (c *conduct) giveUp(err error) (*http.Response, error) {
	if c.first != nil {
		return c.first, nil
	}
	if none, ok := errors.AsType[*cascade.NoAnswerError](err); ok {
		for _, a := range none.Attempts {
			if a.Err != nil {
				return nil, a.Err
			}
		}
		return nil, &weir.Refusal{Upstream: c.x.d.o.Name, Operation: c.x.route.Operation, Reason: weir.CircuitOpen, RetryAfter: max(none.Wait, time.Second)}
	}
	return nil, err
}

// forget closes the upstream's own answer if another one is given.
func (c *conduct) forget(instead *http.Response) {
	if c.first != nil && c.first != instead {
		_ = c.first.Body.Close()
	}
}

// tier asks one tier.
func (c *conduct) tier(ctx context.Context, turn cascade.Turn) (*http.Response, error) {
	if turn.Time > 0 {
		ctx = &until{ctx, time.Now().Add(turn.Time)}
	}
	if turn.Index == 0 {
		return c.primary(ctx)
	}
	t, ok := c.x.d.tiers[turn.Tier]
	if !ok {
		return nil, cascade.ErrPass // the cascade has been changed since this request came
	}
	switch {
	case t.Upstream != "" || t.Model != "":
		return c.secondary(ctx, t)
	case t.Cached:
		return c.old()
	case t.Answers != nil:
		return c.static(t, turn)
	default:
		return c.own(t.Message, turn, nil)
	}
}

// until is a context that says when it will end although it is kept for longer: nobody
// waits for a turn that comes too late.
type until struct {
	context.Context
	at time.Time
}

func (u *until) Deadline() (time.Time, bool) { return u.at, true }

// primary sends the request to the upstream itself.
func (c *conduct) primary(ctx context.Context) (*http.Response, error) {
	resp, err := c.ask(ctx, proxy.Letter{})
	if bad, ok := errors.AsType[*badAnswer](err); ok && c.first == nil {
		c.first = bad.resp
	}
	return resp, err
}

// secondary sends it to another model. What is wrong with it there may be fine elsewhere.
func (c *conduct) secondary(ctx context.Context, t *Tier) (*http.Response, error) {
	path, query, body := c.x.request.For(t.Model)
	header := c.header()
	if t.Upstream != "" && !c.x.d.trusts(t.Upstream) {
		strip(header)
		header.Del("OpenAI-Organization")
		header.Del("OpenAI-Project")
		query = withoutKey(query)
	}
	resp, err := c.ask(ctx, proxy.Letter{Upstream: t.Upstream, Path: path, Query: query, Header: header, Body: body, Priority: c.x.priority})
	if err == nil {
		return resp, nil
	}
	if bad, ok := errors.AsType[*badAnswer](err); ok {
		_ = bad.resp.Body.Close()
		err = &tierError{bad.Error(), bad.outcome, nil}
	}
	if cascade.Classify(c.r.Context(), err).Class == outcome.Rejected {
		return nil, fmt.Errorf("%w: %v", cascade.ErrNothing, err)
	}
	return nil, err
}

// header is that of the request, with what a dialect below has taken out of it.
func (c *conduct) header() http.Header {
	h := c.r.Header.Clone()
	for name, values := range c.x.taken {
		h[name] = values
	}
	return h
}

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
func (c *conduct) ask(ctx context.Context, to proxy.Letter) (*http.Response, error) {
	own, end := context.WithCancelCause(c.r.Context())
	stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	kept := own
	if at, ok := ctx.Deadline(); ok {
		kept = &until{own, at}
	}
	resp, story, err := c.send(c.bill.in(kept), to)
	if stopped := stop(); err == nil && !stopped {
		_ = resp.Body.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		end(nil)
		return nil, err
	}
	resp.Body = outside(&released{resp.Body, end}, resp.Body)
	switch o := c.x.d.own(resp, story.Outcome, to.Upstream); {
	case o.Class == outcome.OK:
		return resp, nil
	case c.bill.worthless != nil:
		_ = resp.Body.Close()
		return nil, &tierError{"answered with 200 and nothing to read: " + o.Code, o, c.bill.worthless}
	default:
		return resp, &badAnswer{resp, o}
	}
}

// own is an outcome as the cascade sees it. A key of weir's own that is not valid, or whose
// account is at its end, is no fault of the caller. And what a hint says of a caller's own
// key, whose pool is paused, is no reason for the tier to cool down for everybody.
func (d *Dialect) own(resp *http.Response, o outcome.Outcome, upstream string) outcome.Outcome {
	if !d.keyed(upstream) {
		o.Hint = outcome.Hint{Advice: o.Hint.Advice, Limits: o.Hint.Limits}
		return o
	}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		if o.Class == outcome.Rejected {
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

// old is what the cache has, however old.
func (c *conduct) old() (*http.Response, error) {
	if !c.cached || c.state == cache.Miss {
		return nil, cascade.ErrNothing
	}
	resp := c.replay(c.held)
	if resp == nil {
		return nil, cascade.ErrNothing
	}
	c.replayed = true
	return resp, nil
}

// static is a static answer to the question.
func (c *conduct) static(t *Tier, turn cascade.Turn) (*http.Response, error) {
	m, ok := t.Answers.Find(c.x.request.Question(), answers.Accepted(c.x.language)...)
	if !ok {
		return nil, cascade.ErrNothing
	}
	return c.own(m.Answer, turn, map[string]string{"answer": m.ID, "language": m.Language})
}

// own is an answer that no model gave, in the caller's format. There is none where it is
// not known how the model would have put it.
func (c *conduct) own(text string, turn cascade.Turn, meta map[string]string) (*http.Response, error) {
	all := map[string]string{"weir_tier": turn.Tier, "weir_confidence": percent(turn.Confidence), "weir_degraded": "true"}
	for k, v := range meta {
		all["weir_"+k] = v
	}
	header, body := c.x.request.Answer(llm.Answer{Text: text, Model: c.x.request.Model, Meta: all})
	if header == nil {
		return nil, cascade.ErrNothing
	}
	return made(header, body), nil
}

// made is an answer of weir's own making.
func made(header http.Header, body []byte) *http.Response {
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set(CostHeader, price.Amount(0).String())
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
