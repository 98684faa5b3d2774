package weir_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
)

// A call whose deadline passes while it waits for its turn is refused with a RetryAfter, whatever it waits for. It
// was not sent, so it is no timeout of the upstream.
func TestADeadlineInLineIsARefusal(t *testing.T) {
	for _, w := range waysOfWaiting() {
		if w.begin == nil {
			continue // a custom gate defines its own errors
		}
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := w.patient(t)
				var wg sync.WaitGroup
				for i := range 20 {
					wg.Go(func() {
						ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(i+1)*137*ms, context.DeadlineExceeded)
						defer cancel()
						p, err := u.Acquire(ctx, weir.Call{Keys: map[string]string{"user": "ann"}})
						if err == nil { // its turn came
							p.Report(ok)
						} else if r := refusal(t, err); r.RetryAfter <= 0 {
							t.Errorf("call %d: %v, to come back after %v", i, err, r.RetryAfter)
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

// patient returns an upstream whose calls may wait for long, and makes later calls wait.
func (w *way) patient(t *testing.T) *weir.Upstream {
	t.Helper()
	p := w.policy
	p.MaxWait = time.Hour
	var u *weir.Upstream
	if w.fleet {
		u = joined(t, 1, p)[0]
	} else {
		u = open(t, p, w.o)
	}
	w.begin(t, u)
	return u
}
