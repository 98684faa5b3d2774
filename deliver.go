package weir

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Request is an HTTP call that weir makes later. It contains no credentials: they are added when it is sent.
type Request struct {
	ID     string // of the delivery; "" generates one
	Method string
	Path   string // raw, as at the upstream
	Query  string // raw
	Header map[string][]string
	Body   []byte

	Key      string // idempotency key: requests with the same key are one delivery; "" for none
	OrderKey string // deliveries with the same key are made in order; "" for none
	Stop     bool   // if it becomes a dead letter, later deliveries of its order key wait; otherwise they continue
	Owner    string // the caller to whom it and its keys belong, if callers have names

	Callback    string    // name of a callback of the Deliverer that reports the end; "" for none
	Correlation string    // ID of the call that it belongs to; "" for none
	NotBefore   time.Time // zero: immediately
	Expires     time.Time // zero: never
}

// A Receipt confirms that a request is stored.
type Receipt struct {
	ID    string
	Fresh bool // false if it was stored before, under the same key or ID
	Over  bool // it was delivered or is a dead letter
}

// A Deliverer stores requests durably before it returns, and delivers them later under the policy of their upstream.
// It is a *delivery.Worker. A Deliverer must be safe for concurrent use.
type Deliverer interface {
	Deliver(ctx context.Context, upstream string, r *Request) (Receipt, error)
}

// ErrNoDeliverer means that Options.Deliverer is not set.
var ErrNoDeliverer = errors.New("deliveries are not configured: set Options.Deliverer")

// Deliver stores a request for later delivery, and returns when it is stored. See package delivery.
func (u *Upstream) Deliver(ctx context.Context, r Request) (Receipt, error) {
	if u.options.Deliverer == nil {
		return Receipt{}, fmt.Errorf("deliver to %s: %w", u.name, ErrNoDeliverer)
	}
	receipt, err := u.options.Deliverer.Deliver(ctx, u.name, &r)
	if err != nil {
		return receipt, fmt.Errorf("deliver to %s: %w", u.name, err)
	}
	return receipt, nil
}
