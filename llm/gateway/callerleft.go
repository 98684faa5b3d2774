package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/llm"
)

// left reports whether the caller has given up what a provider was at: it has gone, or the time
// that it said is up. The provider goes on writing for a while, or has written already, so the
// call has used what was expected of it. It is told once.
func (c *conduct) left() bool {
	gone := errors.Is(c.r.Context().Err(), context.Canceled)
	late := c.haste > 0 && time.Since(c.start) >= c.haste/2 // a tier has a part of it
	if !gone && !late {
		return false
	}
	x := c.progress.open.Swap(nil)
	if x == nil {
		return false
	}
	if e := x.expected(); x.request != nil {
		used := llm.Usage{Said: true, Input: e.Input, Output: e.Output}
		cost, priced := x.d.o.Prices.Cost(x.request.Model, used)
		x.tell(used, cost, priced)
	}
	return true
}

// Failed is httpx.Failer's. What broke off is nobody's to pay, though its caller leaves before the next attempt.
func (x *exchange) Failed(ctx context.Context, err error) error {
	if b := progressOf(ctx); b != nil && ctx.Err() == nil && broken(err) {
		b.open.Store(nil)
	}
	if inner, ok := x.inner.(httpx.Failer); ok {
		return inner.Failed(ctx, err)
	}
	return err
}

var _ httpx.Failer = (*exchange)(nil)

// broken reports whether an attempt ended by itself, and not because its time was up or its caller had gone.
func broken(err error) bool {
	_, own := err.(silence)
	return own || err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
