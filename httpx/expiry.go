package httpx

import (
	"context"
	"time"
)

// An expiry ends an attempt at its timeout. A Transport uses it again for another attempt if it was stopped in time: most
// are, and to make one takes two objects.
type expiry struct {
	timer  *time.Timer
	cancel context.CancelCauseFunc // of the attempt
	why    error                   // it ends at its timeout
	once   bool                    // it is not to be used again
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

// moves has the expiry come after d, not when it was to. Where it has come by then its goroutine may still read it.
func (e *expiry) moves(d time.Duration) { e.once = !e.timer.Reset(d) || e.once }

// stops ends an expiry. One that may have come is not used again: what it is about to end would be another attempt.
func (t *Transport) stops(e *expiry) {
	if e.timer.Stop() && !e.once {
		e.cancel, e.why = nil, nil
		t.expiries.Put(e)
	}
}
