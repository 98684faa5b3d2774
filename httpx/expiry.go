package httpx

import (
	"context"
	"time"
)

// An expiry ends an attempt at its timeout. A Transport reuses it if it was stopped in time, which is usual, because creating one
// takes two allocations.
type expiry struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc // of the attempt
	why    error                   // the error with which the attempt ends
	once   bool                    // it must not be reused
}

// expiry ends an attempt after d, unless it is stopped.
func (t *Transport) expiry(d time.Duration, why error, cancel context.CancelCauseFunc) *expiry {
	if e, ok := t.expiries.Get().(*expiry); ok {
		e.cancel, e.why = cancel, why
		e.timer.Reset(d)
		return e
	}
	e := &expiry{cancel: cancel, why: why}
	e.timer = time.AfterFunc(d, e.ends)
	return e
}

func (e *expiry) ends() { e.cancel(e.why) }

// moves changes the timeout to d from now. If it has already expired, its goroutine may still read the fields.
func (e *expiry) moves(d time.Duration) { e.once = !e.timer.Reset(d) || e.once }

// stops stops an expiry. It does not reuse an expiry that may have fired, because it could end another attempt.
func (t *Transport) stops(e *expiry) {
	if e.timer.Stop() && !e.once {
		e.cancel, e.why = nil, nil
		t.expiries.Put(e)
	}
}
