// Package direct is a transport to upstreams that speak HTTP/1.1 without encryption. It sends a request and
// reads its answer in the goroutine that asks. net/http has two goroutines for each connection, and hands
// every request and every answer from one to the next.
//
// What is written and what is read is net/http's own, Request.Write and ReadResponse, so where a message
// ends is as it says. Requests with bodies that are long or still to come, for other protocols, and whatever else
// is out of the ordinary go through another transport (docs/adr/0013-direct.md).
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

// A Transport is an http.RoundTripper. It may be used by any number of goroutines.
type Transport struct {
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Next     http.RoundTripper // for all requests that are not sent here
	Most     int               // idle connections that are kept, in all
	IdleTime time.Duration     // for how long
	Headers  time.Duration     // longest wait for the head of an answer, once the request is written; 0 or less if there is no bound

	// News hears of answers before the answer (1xx); nil means that nobody wants to know. It may return nil.
	News func(context.Context) func(status int, header textproto.MIMEHeader) error

	idle pool
}

// RoundTrip is http.RoundTripper's.
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
		// An idle connection that the upstream was about to close: nothing came, so a request that may be
		// repeated is sent once more, over a new one. net/http goes on through all idle ones; but what the upstream
		// hangs up on would be sent as often as there are.
		if !used || c.heard || !repeatable(r) || r.Context().Err() != nil || isTimeout(err) {
			return nil, err
		}
	}
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// longHead is a head that the upstream may answer before it has read all of it: nobody reads while it is written.
const longHead = 64 << 10

// takes reports whether a request is sent here: a plain one that net/http would send without a question. Its body is
// looked at last: that may read it, and one that waits for a word of the upstream must not be asked for.
func takes(r *http.Request) bool {
	return pooled && bare(r) && plainURL(r.URL) && plainHeader(r.Header, longHead-len(r.URL.Path)-len(r.URL.RawQuery)) && (bodiless(r) || small(r))
}

// bare reports whether a request has nothing but a head and at most a body, and asks for nothing but an answer.
func bare(r *http.Request) bool {
	return len(r.TransferEncoding) == 0 && len(r.Trailer) == 0 &&
		!r.Close && r.Method != http.MethodConnect && httpguts.ValidHeaderFieldName(r.Method) // both are tokens
}

func bodiless(r *http.Request) bool {
	return (r.Body == nil || r.Body == http.NoBody) && r.ContentLength == 0
}

// mostBody is the longest body that is sent here: a system takes so much of it at once, so that it is written
// whether the upstream reads it or answers before.
const mostBody = 16 << 10

// small reports whether a request has a body of known length that is all in memory, as it says itself: it is not
// waited for.
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
	return !strings.ContainsFunc(u.Host, func(c rune) bool { return c >= 0x80 || c <= ' ' }) // names of other alphabets are net/http's
}

// plainHeader reports whether a header has nothing but fields that are sent as they are, of so many bytes at most.
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

// repeatable reports whether net/http would send a request again that may have been done. A body has been read.
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

// connection is an idle connection, if those may be used, or the first one there is of a new one and of those that
// become idle meanwhile; used says that it is not new.
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

// dial makes a connection for who waits. If that one has gone, or has another, it is kept: the next attempt need not
// begin anew to connect.
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

// wants is who wants to hear of answers before the answer.
func (t *Transport) wants(ctx context.Context) (news func(int, textproto.MIMEHeader) error) {
	if t.News != nil {
		news = t.News(ctx)
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.Got1xxResponse != nil {
		news = trace.Got1xxResponse
	}
	return news
}

// CloseIdleConnections closes those that nobody uses, here and of the other transport.
func (t *Transport) CloseIdleConnections() {
	t.idle.sweep(0)
	if next, ok := t.Next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
