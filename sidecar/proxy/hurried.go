package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/httpx"
)

// hurried returns a request that ends after the timeout that its caller states in the dialect.
func (t *trip) hurried(r *http.Request) (*http.Request, context.CancelFunc) {
	x, ok := t.exchange.(httpx.Hurried)
	if !ok {
		return r, func() {}
	}
	d, said := x.Patience()
	if !said {
		return r, func() {}
	}
	t.hurry = true
	ctx, cancel := context.WithTimeout(r.Context(), d)
	return r.WithContext(ctx), cancel
}

// impatient reports whether a request ended by that timeout. It compares with the clock because the upstream knows the
// deadline too and may react before the timer.
func impatient(ctx context.Context) bool {
	if t, ok := ctx.Value(tripKey{}).(*trip); !ok || !t.hurry {
		return false
	}
	at, _ := ctx.Deadline()
	return !time.Now().Before(at)
}
