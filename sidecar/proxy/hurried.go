package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/httpx"
)

// An outOfTime is why a request ends that has taken as long as its caller said that it may. The caller is still
// there, and is told so. It is a deadline error to whoever asks.
type outOfTime struct{}

func (outOfTime) Error() string        { return "the time that the caller gave is up" }
func (outOfTime) Timeout() bool        { return true }
func (outOfTime) Is(target error) bool { return target == context.DeadlineExceeded }

// hurried is a request that ends when its caller has waited for as long as its dialect says.
func (t *trip) hurried(r *http.Request) (*http.Request, context.CancelFunc) {
	x, ok := t.exchange.(httpx.Hurried)
	if !ok {
		return r, func() {}
	}
	d, said := x.Patience()
	if !said {
		return r, func() {}
	}
	ctx, cancel := context.WithDeadlineCause(r.Context(), time.Now().Add(d), outOfTime{})
	return r.WithContext(ctx), cancel
}

// impatient reports whether a request has ended that way.
func impatient(ctx context.Context) bool { return context.Cause(ctx) == error(outOfTime{}) }
