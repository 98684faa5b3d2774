package lambdax

import (
	"context"
	"net/http"

	"github.com/seed1158cd35/weir/httpx"
)

// ServeHTTP answers requests of a listener as V1 and V2 answer requests of API Gateway. So a program can be both a function and a
// server, and tests need no events. The response is buffered until it is complete.
func (w *Web) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	p := w.answer(r.Context(), correlationOf(r.Header.Get(httpx.CorrelationHeader)), func(ctx context.Context) (*http.Request, error) {
		return r.WithContext(ctx), nil
	})
	for name, all := range p.header {
		to.Header()[name] = all
	}
	to.WriteHeader(p.status)
	_, _ = to.Write(p.body.Bytes()) // the caller may have left
}

var _ http.Handler = (*Web)(nil)
