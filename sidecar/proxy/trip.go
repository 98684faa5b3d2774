package proxy

import (
	"context"
	"io"
	"net/http"
	"net/url"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// A trip is one request on its way through.
type trip struct {
	to   *target
	path string   // raw
	at   *url.URL // where a request that is forwarded goes; nil means the upstream's URL

	route   Route              // the zero Route if it came by none
	session *websocket.Session // nil if it is to be no WebSocket

	stream bool // the body may be silent, and slow

	id    string
	came  *http.Request // as it came, with the headers that are not sent on
	who   guest
	story weir.Trace

	exchange httpx.Exchange  // nil if the upstream has no dialect
	news     *news           // nil where httputil passes them on
	table    *table          // that it began with
	priority *limit.Priority // nil means what the exchange says

	answer  http.ResponseWriter
	body    io.Reader // as the server gave it
	paces   *upload   // the body where weir reads it before it sends anything; nil elsewhere
	duplex  bool      // the body may be read while the answer is written
	cut     error     // the answer broke off
	stored  bool      // it is a delivery from now on
	unheard bool      // the dialect did not take it, before it was known of which operation it is
	counts  bool      // it came in from a caller, whom it is charged to
	bounded bool      // its caller holds a connection for it, which Access.ConnLimit has counted
	hurry   bool      // the request ends when its caller has waited for as long as it said

	brought int         // status of the upstream's answer, once it is passed on
	said    int         // that of an answer of weir's own
	trace   *trace.Call // nil if it is not traced
}

// url returns the URL before the path of the request.
func (t *trip) url() *url.URL {
	if t.at != nil {
		return t.at
	}
	return t.to.URL
}

type tripKey struct{}

// in is the context of the request: one value that holds all that is needed, as
// every further layer costs each look-up.
func (t *trip) in(ctx context.Context) context.Context { return &tripContext{ctx, t} }

type tripContext struct {
	context.Context
	trip *trip
}

func (c *tripContext) Value(key any) any {
	switch key {
	case tripKey{}:
		return c.trip
	case correlationKey{}:
		return c.trip.id
	}
	if of, ok := trace.CallFor(key, c.trip.trace); ok {
		return of
	}
	if who, ok := httpx.CallerFor(key, (*httpx.Caller)(&c.trip.who)); ok {
		return who
	}
	if c.trip.bounded && connlimit.IsRoom(key) {
		return c.trip.room()
	}
	if s, ok := httpx.TraceFor(key, &c.trip.story); ok {
		return s
	}
	return c.Context.Value(key)
}

func tripOf(ctx context.Context) *trip { return ctx.Value(tripKey{}).(*trip) }
