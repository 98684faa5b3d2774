package weir

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Request is a call that may be made later, as HTTP says it. It holds no credentials: those are added when it is
// sent.
type Request struct {
	ID     string // of the delivery; "" has one made
	Method string
	Path   string // raw, as at the upstream
	Query  string // raw
	Header map[string][]string
	Body   []byte

	Key      string // idempotency key: the same key and request are one delivery; "" if there is none
	OrderKey string // deliveries of one key go one after the other; "" for none
	Stop     bool   // those that come after it under its order key wait while it is a dead letter; without it they go on
	Owner    string // who may look at it where callers have names, and whose the keys are

	Callback    string    // names whom to tell once it is over, of those that the Deliverer knows; "" for nobody
	Correlation string    // ID of the call that it belongs to; "" has none
	NotBefore   time.Time // zero: at once
	Expires     time.Time // zero: never
}

// A Receipt says that a request is stored.
type Receipt struct {
	ID    string
	Fresh bool // false if it was stored before, under the same key or ID
	Over  bool // it was delivered, or is a dead letter
}

// A Deliverer stores requests durably before it returns, and delivers them later under the policy of their upstream:
// a *delivery.Worker.
type Deliverer interface {
	Deliver(ctx context.Context, upstream string, r *Request) (Receipt, error)
}

// ErrNoDeliverer means that nothing keeps what is to be delivered later.
var ErrNoDeliverer = errors.New("deliveries are not configured: set Options.Deliverer")

// Deliver has a request delivered later, and returns when it is stored. See package delivery.
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
