package httpx

import (
	"context"
	"net/http"
	"slices"
)

// CorrelationHeader carries the id under which one request is found in all logs.
// It is taken from the request or made, passed on, and returned.
const CorrelationHeader = "X-Correlation-Id"

// A Caller is whom a request came from.
type Caller struct {
	Name  string   // of its token or certificate; "" if nobody was asked for one
	Shown []string // the headers in which it shows a token of weir's, which is not sent on

	Scopes []string // that its token has, if somebody else issued it
}

type callerKey struct{}

// WithCaller is ctx of a request of the caller.
func WithCaller(ctx context.Context, c *Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFor answers the Value method of a context that keeps a caller itself, instead of by
// WithCaller: it is c if that is what the key asks for.
func CallerFor(key any, c *Caller) (*Caller, bool) {
	if key == (callerKey{}) {
		return c, true
	}
	return nil, false
}

// CallerOf is the name of the caller of a request's context, "" if it has none.
func CallerOf(ctx context.Context) string {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return c.Name
	}
	return ""
}

// HidesToken reports whether a header of the request shows a token of weir's: to a dialect it is
// no credential.
func HidesToken(r *http.Request, header string) bool {
	c, ok := r.Context().Value(callerKey{}).(*Caller)
	return ok && slices.Contains(c.Shown, header)
}
