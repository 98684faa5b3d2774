package proxy

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"

	"github.com/seed1158cd35/weir/httpx"
)

type correlationKey struct{}

func correlation(ctx context.Context) string {
	id, _ := ctx.Value(correlationKey{}).(string)
	return id
}

// correlationOf is the id of a request: its own if it has one that may stand in
// a log.
func correlationOf(r *http.Request) string {
	if v := r.Header[httpx.CorrelationHeader]; len(v) > 0 && harmless(v[0]) {
		return v[0]
	}
	return strconv.FormatUint(rand.Uint64()|1<<63, 36)
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
