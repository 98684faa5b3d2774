// Package direct is a transport to upstreams with HTTP/1.1 without encryption. It sends a request and reads the
// response in the caller's goroutine. net/http uses two goroutines for each connection, and passes every request and
// response between them.
//
// net/http's own Request.Write and ReadResponse write and read the messages, so they determine where a message ends.
// Another transport handles long bodies, bodies that are not in memory, other protocols and all unusual requests
// (docs/adr/0013-direct.md).
package direct

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// A Transport is an http.RoundTripper. It is safe for concurrent use.
type Transport struct {
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Next     http.RoundTripper // for all requests that are not sent here
	Most     int               // maximum number of idle connections in total
	IdleTime time.Duration     // how long they are kept
	Headers  time.Duration     // longest wait for the head of a response after the request is written; 0 or less means no limit

	// News returns a function that gets interim responses (1xx). News and its result may be nil.
	News func(context.Context) func(status int, header textproto.MIMEHeader) error

	idle pool
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !takes(r) {
		return t.Next.RoundTrip(r)
	}
	address := addressOf(r)
	for first := true; ; first = false {
		if err := context.Cause(r.Context()); err != nil {
			return nil, err
		}
		c, used, err := t.connection(r.Context(), address, first)
		if err != nil {
			return nil, err
		}
		resp, err := c.ask(t, r)
		if err == nil {
			return resp, nil
		}
		// The upstream closed the idle connection before a response. A repeatable request is sent once more, over a
		// new connection. net/http would try all idle connections. If a request makes the upstream hang up, it would
		// be sent on each of them.
		if !used || c.heard || !repeatable(r) || r.Context().Err() != nil || isTimeout(err) {
			return nil, err
		}
	}
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// longHead is the size from which a head is sent elsewhere. The upstream may respond before it has read all of it,
// and this transport does not read while it writes.
const longHead = 64 << 10

// takes reports whether a request is sent here: a plain request that net/http would send unchanged. It checks the
// body last, because that may read it, and a body that waits for 100 Continue must not be requested.
func takes(r *http.Request) bool {
	return pooled && bare(r) && plainURL(r.URL) && plainHeader(r.Header, longHead-len(r.URL.Path)-len(r.URL.RawQuery)) && (bodiless(r) || small(r))
}

// bare reports whether a request consists of a head and at most a body, and expects only a response.
func bare(r *http.Request) bool {
	return len(r.TransferEncoding) == 0 && len(r.Trailer) == 0 &&
		!r.Close && r.Method != http.MethodConnect && httpguts.ValidHeaderFieldName(r.Method) // both are tokens
}

func bodiless(r *http.Request) bool {
	return (r.Body == nil || r.Body == http.NoBody) && r.ContentLength == 0
}

// mostBody is the longest body that is sent here. The system's socket buffers hold that much, so that writing does
// not block even if the upstream does not read it or responds early.
const mostBody = 16 << 10

// small reports whether a request has a body of known length that is completely in memory, so that reading does not
// block.
func small(r *http.Request) bool {
	if r.ContentLength <= 0 || r.ContentLength > mostBody {
		return false
	}
	m, ok := r.Body.(interface{ InMemory() bool })
	return ok && m.InMemory()
}

func plainURL(u *url.URL) bool {
	if u == nil || u.Scheme != "http" || u.Host == "" {
		return false
	}
	return !strings.ContainsFunc(u.Host, func(c rune) bool { return c >= 0x80 || c <= ' ' }) // net/http converts names in other alphabets
}

// plainHeader reports whether a header has at most most bytes and only fields that are sent unchanged.
func plainHeader(h http.Header, most int) bool {
	for name, values := range h {
		switch name {
		case "Upgrade", "Expect", "Connection", "Transfer-Encoding":
			return false
		}
		if !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, v := range values {
			if most -= len(name) + len(v); most < 0 || !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	return most >= 0
}

// repeatable reports whether net/http would repeat a request that may have been executed. A request with a body is
// not repeatable, because the body has been read.
func repeatable(r *http.Request) bool {
	if !bodiless(r) {
		return false
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return r.Header["Idempotency-Key"] != nil || r.Header["X-Idempotency-Key"] != nil
}

func addressOf(r *http.Request) string {
	host := r.URL.Host
	if i := strings.LastIndexByte(host, ':'); i > 0 && i < len(host)-1 && host[len(host)-1] != ']' {
		return host
	}
	return net.JoinHostPort(r.URL.Hostname(), "80")
}

// connection returns an idle connection, if idle is set and there is one. Otherwise it returns whichever comes first:
// a new connection, or one that becomes idle. used means that the connection is not new.
func (t *Transport) connection(ctx context.Context, address string, idle bool) (c *conn, used bool, err error) {
	if idle {
		if c := t.idle.take(address); c != nil {
			return c, true, nil
		}
	}
	w := &waiter{address: address, idle: idle, got: make(chan connected, 1)}
	t.idle.wait(w)
	go t.dial(context.WithoutCancel(ctx), w)
	select {
	case got := <-w.got:
		return got.conn, got.used, got.err
	case <-ctx.Done():
		if got, ok := t.idle.leave(w); ok && got.err == nil {
			t.keep(got.conn)
		}
		return nil, false, context.Cause(ctx)
	}
}

// dial makes a connection for a waiter. If the waiter has left or has another connection, dial keeps the new one for
// the next attempt.
func (t *Transport) dial(ctx context.Context, w *waiter) {
	n, err := t.Dial(ctx, "tcp", w.address)
	if err != nil {
		t.idle.give(w, connected{err: err})
		return
	}
	if c := newConn(n, w.address); !t.idle.give(w, connected{conn: c}) {
		t.keep(c)
	}
}

// keep makes a connection idle, or closes it.
func (t *Transport) keep(c *conn) {
	if !t.idle.put(c, t.Most, t.IdleTime) {
		_ = c.net.Close()
	}
}

// wants returns the function that gets interim responses.
func (t *Transport) wants(ctx context.Context) (news func(int, textproto.MIMEHeader) error) {
	if t.News != nil {
		news = t.News(ctx)
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.Got1xxResponse != nil {
		news = trace.Got1xxResponse
	}
	return news
}

// CloseIdleConnections closes the idle connections of this and of the other transport.
func (t *Transport) CloseIdleConnections() {
	t.idle.sweep(0)
	if next, ok := t.Next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
