package gateway

import (
	"context"
	"errors"
	"sync"

	"github.com/seed1158cd35/weir/cascade"
)

// rushed is who has had too little time for each tier since it answered last. One caller who waits
// for less than an answer takes must not close the tier to others; two of them are a sign.
type rushed struct {
	mu sync.Mutex // held for a moment, and nothing else is taken under it
	by map[string]string
}

// alone reports whether nobody but the caller has been in a hurry.
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

// A hurriedError is a timeout that its caller alone has brought about.
type hurriedError struct{ error }

func (e hurriedError) Unwrap() error        { return e.error }
func (e hurriedError) Is(target error) bool { return target == cascade.ErrHurry }

// hurried is the error of a tier, which may be the caller's own doing.
func (c *conduct) hurried(tier string, err error) error {
	switch {
	case err == nil:
		c.x.d.rushed.answered(tier)
	case c.haste > 0 && errors.Is(err, context.DeadlineExceeded) && c.x.d.rushed.alone(tier, c.x.keys[Caller]):
		return hurriedError{err}
	}
	return err
}
