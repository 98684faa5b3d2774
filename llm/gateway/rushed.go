package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/seed1158cd35/weir/cascade"
)

// A rushed records for each tier the last caller whose short timeout ended an attempt since the tier last answered. One
// caller with a short timeout must not close the tier for others. Two such callers indicate a slow tier.
type rushed struct {
	mu sync.Mutex // held briefly; no other lock is taken under it
	by map[string]string
}

// alone reports whether no other caller had a short timeout, and records this one.
func (r *rushed) alone(tier, caller string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, known := r.by[tier]
	if r.by == nil {
		r.by = make(map[string]string)
	}
	r.by[tier] = caller
	return !known || before == caller
}

func (r *rushed) answered(tier string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.by, tier)
}

// A hurriedError is a timeout caused only by its caller's short timeout.
type hurriedError struct{ error }

func (e hurriedError) Unwrap() error        { return e.error }
func (e hurriedError) Is(target error) bool { return target == cascade.ErrHurry }

// hurried returns the error of a tier, as a hurriedError if the caller's short timeout caused it.
func (c *conduct) hurried(tier string, err error) error {
	switch {
	case err == nil:
		c.x.d.rushed.answered(tier)
	case c.haste > 0 && errors.Is(err, context.DeadlineExceeded) && c.x.d.rushed.alone(tier, c.x.keys[Caller]):
		return hurriedError{err}
	}
	return err
}
