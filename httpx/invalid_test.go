package httpx_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/outcome"
)

// invalid are requests that net/http refuses to send, or to finish.
var invalid = []struct {
	name  string
	spoil func(*http.Request)
	only  int // the HTTP version in which it is refused; 0 means both
}{
	{"space in the method", func(r *http.Request) { r.Method = "GE T" }, 0},
	{"control character in the method", func(r *http.Request) { r.Method = "GET\r\nX" }, 0},
	{"method that is not ASCII", func(r *http.Request) { r.Method = "GÉT" }, 0},
	{"name of a header", func(r *http.Request) { r.Header["a b"] = []string{"x"} }, 0},
	{"value of a header", func(r *http.Request) { r.Header["A"] = []string{"x\x00y"} }, 0},
	{"line break in a value", func(r *http.Request) { r.Header["A"] = []string{"x\r\ny"} }, 0},
	{"name of a trailer", func(r *http.Request) { r.Trailer = http.Header{"a b": {"x"}} }, 0},
	{"no host", func(r *http.Request) { r.URL.Host = "" }, 0},
	{"scheme", func(r *http.Request) { r.URL.Scheme = "ftp" }, 0},
	{"control character in the URL", func(r *http.Request) { r.URL = &url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Opaque: "/a\x01b"} }, 0},
	{"control character in the query", func(r *http.Request) { r.URL.RawQuery = "a\x01b" }, 0},
	{"space in the path", func(r *http.Request) { r.URL.Opaque = "/a b" }, 0},
	{"host", func(r *http.Request) { r.Host = "a b" }, 2},
	{"upgrade", func(r *http.Request) {
		r.Header["Connection"], r.Header["Upgrade"] = []string{"Upgrade"}, []string{"echo"}
	}, 2},
	{"connection", func(r *http.Request) { r.Header["Connection"] = []string{"a, b"} }, 2},
	{"transfer encoding", func(r *http.Request) { r.Header["Transfer-Encoding"] = []string{"gzip"} }, 2},
	{"headers above the limit of the peer", func(r *http.Request) { r.Header["A"] = []string{strings.Repeat("x", 1<<20)} }, 2},
	{"body shorter than its length", func(r *http.Request) {
		r.Method, r.Body, r.ContentLength = "PUT", io.NopCloser(strings.NewReader("abc")), 10
	}, 1},
}

func TestInvalidRequestIsNotTheUpstreamsFault(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	server.Config.MaxHeaderBytes = 8 << 10
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	for version := 1; version <= 2; version++ {
		base := server.Client().Transport.(*http.Transport).Clone()
		if base.ForceAttemptHTTP2 = version == 2; version == 1 {
			base.TLSClientConfig.NextProtos, base.TLSNextProto = nil, nil
			base.Protocols = new(http.Protocols)
			base.Protocols.SetHTTP1(true)
		}
		for _, c := range invalid {
			if c.only != 0 && c.only != version {
				continue
			}
			h, p := new(heard), steady()
			p.Breaker = breaker.Config{Consecutive: 1, Successes: 1}
			u := open(t, p, weir.Options{Events: h.events()})
			tr := httpx.NewTransport(u, base)
			send := func(spoil func(*http.Request)) (int, error) {
				r, err := http.NewRequestWithContext(t.Context(), "GET", server.URL, nil)
				if err != nil {
					t.Fatal(err)
				}
				spoil(r)
				resp, err := tr.RoundTrip(r)
				if err != nil {
					return 0, err
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				return resp.StatusCode, nil
			}
			if _, err := send(func(*http.Request) {}); err != nil { // afterwards the peer's limits are known
				t.Fatal(err)
			}
			status, err := send(c.spoil)
			if !errors.Is(err, httpx.ErrInvalidRequest) {
				t.Errorf("HTTP/%d, %s: status %d, error %v, want ErrInvalidRequest", version, c.name, status, err)
			}
			if got := u.Breaker("").Look(u.Now()).Phase; got != breaker.Closed {
				t.Errorf("HTTP/%d, %s: the breaker is %v, want closed", version, c.name, got)
			}
			if n := len(h.ended); n != 2 || h.ended[1] != outcome.Rejected {
				t.Errorf("HTTP/%d, %s: attempts ended %v, want one success and one rejection", version, c.name, h.ended)
			}
			// It does not count for the probe of an open breaker.
			u.Breaker("").ForceOpen(u.Now(), 1)
			_, _ = send(c.spoil)
			if got := u.Breaker("").Look(u.Now()).Phase; got == breaker.Closed {
				t.Errorf("HTTP/%d, %s: as a probe it closed the breaker", version, c.name)
			}
		}
	}
}

// A failure to connect because this machine has no free file or port is not the upstream's fault, and is retried.
func TestLackOfFilesIsNotTheUpstreamsFault(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.ENOBUFS} {
		p := steady()
		p.Breaker, p.Retry.Base = breaker.Config{Consecutive: 1}, 1
		u, dials := open(t, p, weir.Options{}), 0
		tr := httpx.NewTransport(u, &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			dials++
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", errno)}
		}})
		if _, err := tr.RoundTrip(request(t, t.Context(), "GET", nil)); err == nil {
			t.Fatal("no error")
		}
		if got := u.Breaker("").Look(u.Now()).Phase; got != breaker.Closed || dials < 2 {
			t.Errorf("%v: the breaker is %v after %d attempts, want closed after several", errno, got, dials)
		}
	}
}
