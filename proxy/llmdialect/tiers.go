package llmdialect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/answers"
	"github.com/seed1158cd35/weir/cache"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/llm"
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
	if bad, ok := errors.AsType[*badAnswer](err); ok && res.Value == bad.resp { // the caller's own fault
		c.forget(bad.resp)
		return bad.resp, nil
	}
	return c.giveUp(err)
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
		return nil, &proxy.Failure{Status: http.StatusServiceUnavailable, Code: proxy.ServiceUnavailable, Message: none.Error(),
			Reason: weir.CircuitOpen, RetryAfter: none.Wait}
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
	switch t := &c.x.d.o.Tiers[turn.Index]; {
	case t.Upstream != "" || t.Model != "":
		return c.secondary(ctx, t)
	case t.Cached:
		return c.old()
	case t.Answers != nil:
		return c.static(t, turn)
	default:
		return c.own(t.Message, turn, nil), nil
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
	header := c.r.Header.Clone()
	if t.Upstream != "" && !c.x.d.trusts(t.Upstream) {
		strip(header)
		query = withoutKey(query)
	}
	resp, err := c.ask(ctx, proxy.Letter{Upstream: t.Upstream, Path: path, Query: query, Header: header, Body: body, Priority: c.x.priority})
	bad, ok := errors.AsType[*badAnswer](err)
	if !ok {
		return resp, err
	}
	_ = bad.resp.Body.Close()
	if bad.outcome.Class == outcome.Rejected {
		return nil, fmt.Errorf("%w: %v", cascade.ErrNothing, bad)
	}
	return nil, &tierError{bad.Error(), bad.outcome}
}

// A tierError is a badAnswer whose body is gone.
type tierError struct {
	text    string
	outcome outcome.Outcome
}

func (e *tierError) Error() string            { return e.text }
func (e *tierError) Outcome() outcome.Outcome { return e.outcome }

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

// ask sends a request. The answer may go on after the tier's time is up.
func (c *conduct) ask(ctx context.Context, to proxy.Letter) (*http.Response, error) {
	kept, release := cascade.Keep(ctx)
	if at, ok := ctx.Deadline(); ok {
		kept = &until{kept, at}
	}
	resp, story, err := c.send(c.bill.in(kept), to)
	if err != nil {
		release()
		return nil, err
	}
	resp.Body = &released{resp.Body, release}
	if o := c.x.d.own(resp, story.Outcome); o.Class != outcome.OK {
		return resp, &badAnswer{resp, o}
	}
	return resp, nil
}

// own is an outcome as the cascade sees it: a key of weir's own that is not valid is no
// fault of the caller.
func (d *Dialect) own(resp *http.Response, o outcome.Outcome) outcome.Outcome {
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden:
		if d.o.Key != "" && o.Class == outcome.Rejected {
			o.Class = outcome.Failed
		}
	}
	return o
}

// released is a body whose end releases the context of the tier.
type released struct {
	io.ReadCloser
	release context.CancelFunc
}

func (b *released) Close() error {
	err := b.ReadCloser.Close()
	b.release()
	return err
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
	return resp, nil
}

// static is a static answer to the question.
func (c *conduct) static(t *Tier, turn cascade.Turn) (*http.Response, error) {
	m, ok := t.Answers.Find(c.x.request.Question(), answers.Accepted(c.x.language)...)
	if !ok {
		return nil, cascade.ErrNothing
	}
	return c.own(m.Answer, turn, map[string]string{"answer": m.ID, "language": m.Language}), nil
}

// own is an answer that no model gave, in the caller's format.
func (c *conduct) own(text string, turn cascade.Turn, meta map[string]string) *http.Response {
	all := map[string]string{"weir_tier": turn.Tier, "weir_confidence": percent(turn.Confidence), "weir_degraded": "true"}
	for k, v := range meta {
		all["weir_"+k] = v
	}
	header, body := c.x.request.Answer(llm.Answer{Text: text, Model: c.x.request.Model, Meta: all})
	return made(header, body)
}

// made is an answer of weir's own making.
func made(header http.Header, body []byte) *http.Response {
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
