package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/httpx"
)

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
	t.hurry = true
	ctx, cancel := context.WithTimeout(r.Context(), d)
	return r.WithContext(ctx), cancel
}

// impatient reports whether a request has ended that way. The upstream, which knows as well when it is late, may notice
// before the timer does.
func impatient(ctx context.Context) bool {
	if t, ok := ctx.Value(tripKey{}).(*trip); !ok || !t.hurry {
		return false
	}
	at, _ := ctx.Deadline()
	return !time.Now().Before(at)
}
