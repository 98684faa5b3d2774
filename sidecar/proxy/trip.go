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

// A trip is the state of one request while it is served.
type trip struct {
	to   *target
	path string   // raw
	at   *url.URL // target of a forward-proxy request; nil means the upstream's URL

	route   Route              // the zero Route if no route applied
	session *websocket.Session // nil if the request is not for a WebSocket

	stream bool // the body may be silent and slow

	id    string
	came  *http.Request // as received, including headers that are not forwarded
	who   guest
	story weir.Trace

	exchange httpx.Exchange  // nil if the upstream has no dialect
	news     *news           // nil where httputil passes interim responses on
	table    *table          // the table in force at the start
	priority *limit.Priority // nil means that the exchange decides

	answer  http.ResponseWriter
	body    io.Reader // as the server provided it
	paces   *upload   // the body, if weir reads it before it sends anything; otherwise nil
	duplex  bool      // the body may be read while the response is written
	cut     error     // why the response broke off
	stored  bool      // it has become a delivery
	unheard bool      // the dialect refused it before its operation was known
	counts  bool      // it came from a caller, who is charged
	bounded bool      // its caller holds a connection that Access.ConnLimit counted
	hurry   bool      // the request ends after the caller's own timeout

	brought   int         // status of the upstream's response, once it is passed on
	said      int         // status of weir's own response
	refusedBy string      // the limit or other reason by which weir refused the request; "" if it did not
	trace     *trace.Call // nil if it is not traced
}

// url returns the base URL that precedes the path of the request.
func (t *trip) url() *url.URL {
	if t.at != nil {
		return t.at
	}
	return t.to.URL
}

type tripKey struct{}

// in returns the context of the request. One layer holds all values, because every layer makes each look-up slower.
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
