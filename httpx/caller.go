package httpx

import (
	"context"
	"net/http"
	"slices"
)

// CorrelationHeader contains the ID of a request in all logs. It is taken from the request or created, passed on, and returned.
const CorrelationHeader = "X-Correlation-Id"

// A Caller is the sender of a request.
type Caller struct {
	Name  string   // from its token or certificate; "" without authentication
	Shown []string // the headers that contain a weir token, which is not sent on

	Scopes []string // scopes of a token that another issuer issued
}

type callerKey struct{}

// WithCaller returns the context for a request of the caller.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFor helps a context that stores a caller in a field to implement Value. It returns c if key asks for the caller.
func CallerFor(key any, c *Caller) (*Caller, bool) {
	if key == (callerKey{}) {
		return c, true
	}
	return nil, false
}

// CallerOf returns the name of the caller in a request's context, "" if there is none.
func CallerOf(ctx context.Context) string {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return c.Name
	}
	return ""
}

// HidesToken reports whether a header of the request contains a weir token, which is not a credential for a dialect.
func HidesToken(r *http.Request, header string) bool {
	c, ok := r.Context().Value(callerKey{}).(*Caller)
	return ok && slices.Contains(c.Shown, header)
}
