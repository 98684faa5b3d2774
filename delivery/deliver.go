package delivery

import (
	"context"

	"github.com/seed1158cd35/weir"
)

var _ weir.Deliverer = (*Worker)(nil)

// Deliver implements weir.Upstream.Deliver. After ErrUncertain the request may be stored or not: the ID in the receipt,
// or a retry with the same key, finds out.
func (w *Worker) Deliver(ctx context.Context, upstream string, r *weir.Request) (weir.Receipt, error) {
	d, fresh, err := w.Accept(ctx, &Request{
		ID: r.ID, Tenant: r.Owner, Owner: r.Owner, Upstream: upstream, Method: r.Method, Path: r.Path, Query: r.Query, Header: r.Header, Body: r.Body,
		Key: r.Key, OrderKey: r.OrderKey, Stop: r.Stop, Correlation: r.Correlation, Callback: r.Callback, NotBefore: r.NotBefore, Expires: r.Expires,
	})
	return weir.Receipt{ID: d.ID, Fresh: fresh, Over: err == nil && !d.Waits()}, err
}
