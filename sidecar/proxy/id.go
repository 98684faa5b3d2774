package proxy

import (
	"context"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/callid"
)

type correlationKey struct{}

func correlation(ctx context.Context) string {
	id, _ := ctx.Value(correlationKey{}).(string)
	return id
}

// correlationOf returns the ID of a request: the caller's if it is safe to log, otherwise a new one.
func correlationOf(r *http.Request) string {
	if v := r.Header[httpx.CorrelationHeader]; len(v) > 0 && harmless(v[0]) {
		return v[0]
	}
	return callid.New(time.Now())
}

func harmless(id string) bool {
	if id == "" || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
