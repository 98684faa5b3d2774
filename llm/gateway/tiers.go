package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/outcome"
)

func (c *conduct) fall() (*http.Response, error) {
	res, err := cascade.Run(c.r.Context(), c.x.d.o.Cascade, c.tier)
	if err == nil {
		c.forget(res.Value)
		if c.replayed && c.near > 0 {
			res.Confidence = c.less(res.Confidence)
		}
		c.announce(res.Value, res)
		return res.Value, nil
	}
	return c.giveUp(err) // also for errors that are the caller's fault
}

// giveUp returns the upstream's own response or error, because no tier has an answer.
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

// forget closes the upstream's own response if another one is returned.
func (c *conduct) forget(instead *http.Response) {
	if c.first != nil && c.first != instead {
		_ = c.first.Body.Close()
	}
}

func (c *conduct) tier(ctx context.Context, turn cascade.Turn) (*http.Response, error) {
	s := begins(c.r.Context(), "tier")
	resp, err := c.ofTier(ctx, turn)
	s.endsWith(err, trace.Text(trace.AttrTier, turn.Tier))
	return resp, err
}

func (c *conduct) ofTier(ctx context.Context, turn cascade.Turn) (*http.Response, error) {
	if turn.Time > 0 {
		ctx = &until{ctx, time.Now().Add(turn.Time)}
	}
	c.probe, c.progress.tier, c.progress.attempts = turn.Probe, turn.Tier, 0
	c.progress.given, c.progress.last = turn.Time, !c.x.d.hasModelAfter(turn.Index)
	c.progress.below = turn.Index+1 < len(c.x.d.o.Tiers)
	t, ok := c.x.d.tiers[turn.Tier]
	if !ok {
		return nil, cascade.ErrPass // the cascade has changed since this request arrived
	}
	if t.asks(turn.Index) && c.x.d.closed() {
		return nil, &weir.Refusal{Upstream: c.x.d.o.Name, Operation: c.x.route.Operation, Reason: weir.Paused, ByHand: true, RetryAfter: time.Second}
	}
	if t.asks(turn.Index) && c.unpaid != nil && !c.pay(ctx) {
		return nil, c.unpaid
	}
	if turn.Index == 0 {
		resp, err := c.primary(ctx)
		return resp, c.hurried(turn.Tier, err)
	}
	switch {
	case t.Upstream != "" || t.Model != "":
		resp, err := c.secondary(ctx, t)
		return resp, c.hurried(turn.Tier, err)
	case t.Cached:
		return c.old(turn)
	case t.Answers != nil:
		return c.static(t, turn)
	default:
		return c.sorry(t, turn)
	}
}

// asks reports whether a tier with this index calls a model.
func (t *Tier) asks(index int) bool { return index == 0 || t.Upstream != "" || t.Model != "" }

// closed reports whether maintenance stops all model calls.
func (d *Dialect) closed() bool { return d.o.Maintenance != nil && d.o.Maintenance.Message != "" }

// hasModelAfter reports whether a lower tier calls a model.
func (d *Dialect) hasModelAfter(i int) bool {
	for _, t := range d.o.Tiers[min(i+1, len(d.o.Tiers)):] {
		if t.Upstream != "" || t.Model != "" {
			return true
		}
	}
	return false
}

func (c *conduct) primary(ctx context.Context) (*http.Response, error) {
	resp, err := c.ask(ctx, httpx.Request{})
	if bad, ok := errors.AsType[*badAnswer](err); ok && c.first == nil {
		c.first = bad.resp
	}
	return resp, err
}

// secondary sends the request to another model. If that model rejects the request, a further tier may still accept it.
func (c *conduct) secondary(ctx context.Context, t *Tier) (*http.Response, error) {
	path, query, body := c.x.request.For(t.Model)
	header := c.header()
	if t.Upstream != "" {
		c.x.d.anonymous(header)
		if !c.x.d.trusts(t.Upstream) {
			disown(header)
			query = without(query, func(name, _ string) bool { return veil.Secret(name) })
		}
	}
	resp, err := c.ask(ctx, httpx.Request{Upstream: t.Upstream, Path: path, Query: query, Header: header, Body: body, Priority: c.x.priority})
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

// header returns the request's header with the fields that the inner dialect removed.
func (c *conduct) header() http.Header {
	h := c.r.Header.Clone()
	for name, values := range c.x.taken {
		h[name] = values
	}
	return h
}
