package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// On a route that both delivers and stores first answers, a key belongs either to a delivery or to direct calls, never
// to both. Both take the key in the store of first answers. A delivery frees it once it is stored, because it then has
// its own record of the key.

// takesKey takes the key of a request that is about to be stored. The caller calls free when the request is stored or
// refused.
func (p *Proxy) takesKey(ctx context.Context, t *trip, r *http.Request, q *letter) (free func(), not *NotAccepted) {
	free = func() {}
	a := p.answers.Load()
	if !t.route.Keep.On || q.Key == "" || a == nil {
		return free, nil
	}
	print := q.Request
	print.OrderKey, print.NotBefore = "", time.Time{}
	k := &delivery.Keyed{Upstream: t.to.Name, Tenant: t.tenant(r), Key: q.Key, Print: print.Fingerprint(), Call: rand.Text()}
	kept, err := p.begin(ctx, *a, k, storing, accepting) // another request that is being stored is done within accepting
	if err != nil {
		return free, notStored("", err)
	}
	ends := func(how delivery.Finish) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recording)
		defer cancel()
		_ = (*a).Finish(ctx, k, how, nil) // on error, the key expires
	}
	switch kept.State {
	case delivery.FirstCall:
		return func() { ends(delivery.NotMade) }, nil
	case delivery.UnderWay: // a direct call, or a slow store
		return free, &NotAccepted{Why: notOver, Field: "Idempotency-Key", facts: keyUnderWay()}
	case delivery.Unknown:
		ends(delivery.Doubtful)
	}
	return free, &NotAccepted{Why: notFresh, Field: "Idempotency-Key", facts: otherWay("the Idempotency-Key was used for a direct call: use another key")}
}

// storing limits how long a request that is being stored holds its key.
const storing = 5 * time.Second

// delivers reports whether a delivery has the key of a direct call.
func (p *Proxy) delivers(ctx context.Context, t *trip, k *delivery.Keyed) (bool, error) {
	to := p.later.Load()
	if to == nil || t.route.Deliver == DeliverNever {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, accepting)
	defer cancel()
	// This request equals no delivery and is late, so it is never stored: Accept only looks up its key.
	any := delivery.Request{Upstream: k.Upstream, Tenant: t.who.Name, Key: k.Key, Method: "*", Path: "/", Late: &delivery.FieldError{Field: "Idempotency-Key", Reason: "belongs to no delivery"}}
	_, _, err := (*to).Accept(ctx, &any)
	switch {
	case errors.Is(err, delivery.ErrKeyReused):
		return true, nil
	case errors.Is(err, any.Late):
		return false, nil
	}
	return false, err
}

// keyUnderWay refuses a request while another one with its key is in progress. The caller may retry with the same key.
func keyUnderWay() *refuse.Facts {
	return &refuse.Facts{Status: http.StatusConflict, Code: "CONFLICT", Message: "a call with the same Idempotency-Key is running", Wait: time.Second,
		Details: map[string]any{"field": "Idempotency-Key", "reason": "under way"}}
}

// otherWay refuses a request whose key was used for the other kind of call.
func otherWay(message string) *refuse.Facts {
	return &refuse.Facts{Status: http.StatusConflict, Code: "CONFLICT", Message: message, Details: map[string]any{"field": "Idempotency-Key", "reason": "used otherwise"}}
}
