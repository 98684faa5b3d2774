// Package direct is a transport to upstreams that speak HTTP/1.1 without encryption. It sends a request and
// reads its answer in the goroutine that asks. net/http has two goroutines for each connection, and hands
// every request and every answer from one to the next.
//
// What is written and what is read is net/http's own, Request.Write and ReadResponse, so where a message
// ends is as it says. Requests with bodies, for other protocols, and whatever else is out of the ordinary go
// through another transport (docs/adr/0013-direct.md).
package direct

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
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
	for {
		c := t.idle.take(address)
		again := c != nil
		if c == nil {
			var err error
			if c, err = t.dial(r.Context(), address); err != nil {
				return nil, err
			}
		}
		resp, err := c.ask(t, r)
		if err == nil {
			return resp, nil
		}
		// An idle connection that the upstream was about to close: nothing came, so a request that may be
		// repeated is sent over another. net/http does so, too.
		if !again || c.heard || !repeatable(r) || r.Context().Err() != nil || isTimeout(err) {
			return nil, err
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// takes reports whether a request is sent here: a plain one that net/http would send without a question.
func takes(r *http.Request) bool {
	if !pooled || r.URL == nil || r.URL.Scheme != "http" || r.URL.Host == "" || r.Body != nil && r.Body != http.NoBody ||
		r.ContentLength != 0 || len(r.TransferEncoding) > 0 || len(r.Trailer) > 0 || r.Close || r.Method == http.MethodConnect {
		return false
	}
	for _, c := range []byte(r.URL.Host) {
		if c >= 0x80 || c <= ' ' { // names of other alphabets are net/http's
			return false
		}
	}
	for name, values := range r.Header {
		if name == "Upgrade" || name == "Expect" || name == "Connection" || name == "Transfer-Encoding" || !httpguts.ValidHeaderFieldName(name) {
			return false
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return false
			}
		}
	}
	return httpguts.ValidHeaderFieldName(r.Method) // both are tokens
}

// repeatable reports whether net/http would send a request again that may have been done.
func repeatable(r *http.Request) bool {
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

func (t *Transport) dial(ctx context.Context, address string) (*conn, error) {
	c, err := t.Dial(ctx, "tcp", address)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return newConn(c, address), nil
}

// wants is who wants to hear of answers before the answer.
func (t *Transport) wants(ctx context.Context) (news func(int, textproto.MIMEHeader) error, wrote func(httptrace.WroteRequestInfo)) {
	if t.News != nil {
		news = t.News(ctx)
	}
	if trace := httptrace.ContextClientTrace(ctx); trace != nil {
		if wrote = trace.WroteRequest; trace.Got1xxResponse != nil {
			news = trace.Got1xxResponse
		}
	}
	return news, wrote
}

// CloseIdleConnections closes those that nobody uses, here and of the other transport.
func (t *Transport) CloseIdleConnections() {
	t.idle.sweep(0)
	if next, ok := t.Next.(interface{ CloseIdleConnections() }); ok {
		next.CloseIdleConnections()
	}
}
