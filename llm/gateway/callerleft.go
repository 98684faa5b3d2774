package gateway

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/llm"
)

// left reports whether the caller gave up on a call that a provider was processing: the caller disconnected, or its
// stated time is over. The provider may still generate the answer, so the estimated usage is reported. It is reported
// only once.
func (c *conduct) left() bool {
	gone := errors.Is(c.r.Context().Err(), context.Canceled)
	late := c.haste > 0 && time.Since(c.start) >= c.haste/2 // a tier has only a part of the time
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

// Failed implements httpx.Failer. An attempt that broke off costs the caller nothing, even if the caller disconnects
// before the next attempt.
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

// broken reports whether an attempt failed by itself, not because of a timeout or a disconnected caller.
func broken(err error) bool {
	_, own := err.(silence)
	return own || err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}
