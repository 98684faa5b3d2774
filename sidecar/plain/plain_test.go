package plain

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

const post = "POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\nhello"

const get = "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\nX-Tenant: acme\r\n\r\n"

// to returns get with another target, and a second request.
func to(target string) string { return strings.Replace(get, "/a?b=c", target, 1) + get }

// with returns post with another header line.
func with(lines string) string { return strings.Replace(post, "\r\n\r\n", "\r\n"+lines+"\r\n\r\n", 1) }

// instead returns post with a replacement.
func instead(of, by string) string { return strings.Replace(post, of, by, 1) }

// oddities are inputs of a connection. Most of them are not plain.
var oddities = []string{
	post, post + post + post,
	instead("acquire", "report") + post,
	instead("hello", "none!"), instead("hello", "shut!") + post, instead("hello", "panic") + post, instead("hello", "abort") + post, instead("hello", "exits") + post, instead("hello", "204!!") + post, instead("hello", "page!") + post,
	instead("hello", "early") + post, instead("hello", "waits") + post, instead("hello", "large") + post,
	instead("acquire", "limits") + post, instead("acquire", "acquire?a=b"), instead("acquire", "acquire#a"), instead("acquire", "%61cquire"), instead("/v1", "http://localhost/v1"), instead("/v1", "//v1"),
	instead("POST", "GET"), instead("POST", "post"), instead("POST", "PUT"), instead("POST", " POST"), instead("HTTP/1.1", "HTTP/1.0"), instead("HTTP/1.1", "HTTP/1.2"), instead("HTTP/1.1", "http/1.1"), instead(" HTTP/1.1", "  HTTP/1.1"), instead(" HTTP/1.1", ""),
	"\r\n" + post, "\n" + post, post + "\r\n" + post, post + "x", strings.ReplaceAll(post, "\r\n", "\n"), instead("\r\n\r\n", "\n\n"), instead("Host: localhost\r\n", "Host: localhost\n"), instead("Host: localhost\r\n", "Host: localhost\r"),
	instead("Host: localhost\r\n", ""), instead("localhost", ""), instead("localhost", "a b"), instead("localhost", "a/b"), instead("localhost", "a,b"), instead("localhost", "[::1]:80"), instead("localhost", "weir.example:8080"), with("Host: other"),
	instead("Content-Length: 5\r\n", ""), instead(": 5", ": 4"), instead(": 5", ": 6"), instead(": 5", ": 05"), instead(": 5", ":5"), instead(": 5", ": 5 "), instead(": 5", ": +5"), instead(": 5", ": -5"), instead(": 5", ": 0x5"), instead(": 5", ": 5, 5"), instead(": 5", ": "), instead(": 5", ": 99999999999999999999"),
	instead("Content-Length", "Content-Length "), instead("Content-Length", " Content-Length"), instead("Content-Length", "content-length"), instead("Content-Length", "CONTENT-LENGTH"), instead("Content-Length", "Content_Length"), with("Content-Length: 5"), with("Content-Length: 6"), with("content-length: 50"),
	with("Transfer-Encoding: chunked"), with("Transfer-Encoding: identity"), with("Transfer-Encoding : chunked"), with("transfer-encoding: xchunked"), with("Transfer-Encoding:\tchunked"), with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
	instead("Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n") + post,
	instead("Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n") + post,
	with("A: b\r\n c: d"), with("A: b\r\n\tc"), with("A"), with(": a"), with("A : b"), with("A:"), with("A: \x00"), with("A: \x7f"), with("A: b\rc"), with("A: \xc3\xa4"), with("\xc3\xa4: b"), with("A: b\tc"), with("A(: b"), with("a-b: c\r\nX-TENANT: acme"), with("A: b\r\nA: c"), with("Cookie: a=b\r\nCookie: c=d"),
	with("Connection: close") + post, with("Connection: keep-alive") + post, with("Connection: Keep-Alive") + post, with("Connection: keep-alive, close") + post, with("Connection: content-length") + post, with("Connection: upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AA") + post,
	with("Expect: 100-continue") + post, with("Expect: something") + post, with("Trailer: A") + post, with("TE: trailers") + post, with("Proxy-Connection: close") + post, with("Pragma: no-cache") + post,
	with("A: " + strings.Repeat("b", 5000)), with(strings.TrimSuffix(strings.Repeat("A: b\r\n", 100), "\r\n")), with(many(70)), with(many(30)),
	instead(": 5", ": 6000") + strings.Repeat("a", 5995) + post, instead(": 5", ": 3000") + strings.Repeat("a", 2995) + post, instead("5\r\n\r\nhello", "0\r\n\r\n") + post,
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "x", "POST", "POST /v1/acquire HTTP/1.1\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	get + post + get + get, "\r\n" + get + get, strings.Replace(get, "GET", "HEAD", 1) + get, strings.Replace(get, "GET", "DELETE", 1) + post, strings.Replace(get, "GET", "OPTIONS", 1), strings.Replace(get, "GET", "TRACE", 1), strings.Replace(get, "GET", "CONNECT", 1), strings.Replace(get, "GET", "get", 1), strings.Replace(get, "GET /a?b=c", "OPTIONS *", 1),
	to("/"), to("/a%2fb/../c"), to("/a b"), to("/%zz"), to("/a?%zz"), to("/a?"), to("/a?b#c"), to("//a/b"), to("/a//b/"), to("*"), to("a"), to("http://other/a"), to("http:///a"), to("?a"), to("/\xc3\xa4"), to("/\x7f"), to("/a\tb"), to("/a|b^c\"<>"), to("/" + strings.Repeat("a", 3000)), to("/" + strings.Repeat("a", 5000)), to("/a;b=c&d"), to("/[a]:80"), to("/@a:b"), to(":80"), to("//"),
	instead(": 5", ": 16384") + strings.Repeat("a", 16379) + post, instead(": 5", ": 16385") + strings.Repeat("a", 16380) + post, instead("POST", "PUT") + get, instead("POST", "GET") + get, instead("5\r\n\r\nhello", "0\r\n\r\n") + get, instead("Content-Length: 5\r\n", "") + get,
	post + instead("POST", "GET") + post, post + with("Transfer-Encoding: chunked") + post, post + post[:20],
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "A%d: b\r\n", i)
	}
	return strings.TrimSuffix(b.String(), "\r\n")
}

// A witness is a handler that records its requests.
type witness struct {
	mu    sync.Mutex
	heard []string
}

func (h *witness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		fields = append(fields, fmt.Sprintf("%s: %q", name, r.Header[name]))
	}
	h.mu.Lock()
	h.heard = append(h.heard, fmt.Sprintf("%s %s %#v %q %s %s %v %d %v %q %v %v %v %v", r.Method, r.RequestURI, *r.URL, r.Host, r.Proto, r.RemoteAddr,
		fields, r.ContentLength, r.TransferEncoding, body, err, r.Context().Err(), r.Context().Value(http.LocalAddrContextKey), r.Body == http.NoBody))
	h.mu.Unlock()
	w.Header().Set("X-Told", "b\r\nc")
	w.Header().Set("Content-Type", "application/json")
	switch string(body) {
	case "none!":
		return
	case "shut!":
		w.Header().Set("Connection", "close")
	case "panic":
		panic("on purpose")
	case "abort":
		panic(http.ErrAbortHandler)
	case "exits":
		runtime.Goexit()
	case "204!!":
		w.WriteHeader(http.StatusNoContent)
		return
	case "page!":
		w.Header().Del("Content-Type")
		_, _ = io.WriteString(w, "<html>")
		return
	case "early":
		w.WriteHeader(http.StatusTooManyRequests)
	case "waits":
		select {
		case <-r.Context().Done():
		case <-time.After(time.Second):
		}
	case "large":
		w.Header().Set("Content-Length", "40000") // otherwise net/http sends it in chunks
		_, _ = w.Write(bytes.Repeat([]byte("a"), 40000))
		return
	}
	fmt.Fprintf(w, "%d bytes", len(body))
}

// A site is a server with its connections, behind a Listener or alone.
type site struct {
	*http.Server
	witness witness
	net     *memnet.Network
	front   *Listener // nil if net/http serves everything
	done    chan error
}

// Which requests of a site are served by this package.
const (
	netHTTP   = iota
	decisions // the given first lines
	all       // all plain requests
)

func open(by int, changes ...func(*http.Server)) *site {
	s := &site{net: memnet.New(), done: make(chan error, 1)}
	s.Server = &http.Server{Handler: &s.witness, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 90 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	for _, f := range changes {
		f(s.Server)
	}
	l := s.net.Listen("weir:80")
	if lines := []string{"POST /v1/acquire", "POST /v1/report"}; by != netHTTP {
		if by == all {
			lines = nil
		}
		s.front = New(l, s.Server, lines...)
		l = s.front
	}
	go func() { s.done <- s.Serve(l) }()
	return s
}

func (s *site) dial(t *testing.T) net.Conn {
	c, err := s.net.Dial(t.Context(), "tcp", "weir:80")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *site) end() {
	s.Close()
	if s.front != nil {
		s.front.Wait(context.Background())
	}
	s.net.Close()
	<-s.done
}

// says sends a stream in pieces of a size, and returns the requests and the responses.
func (s *site) says(t *testing.T, stream string, piece int) (heard, answers string) {
	c := s.dial(t)
	go func() {
		for b := range slices.Chunk([]byte(stream), piece) {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}()
	all, _ := io.ReadAll(c) // until the server's timeout
	c.Close()
	synctest.Wait()
	s.witness.mu.Lock()
	defer s.witness.mu.Unlock()
	return strings.Join(s.witness.heard, "\n"), answersOf(all)
}

// answersOf describes the received responses, independent of the order of their fields.
func answersOf(all []byte) string {
	var b strings.Builder
	for in := bufio.NewReader(bytes.NewReader(all)); ; {
		if _, err := in.Peek(1); err != nil {
			return b.String()
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return b.String() + err.Error()
		}
		body, err := io.ReadAll(resp.Body)
		if resp.Header.Get("Date") == "" {
			b.WriteString("no date ")
		}
		resp.Header.Del("Date")
		fmt.Fprintf(&b, "%s %d %v %v %v %q %v\n", resp.Status, resp.ContentLength, resp.TransferEncoding, resp.Close, resp.Header, body, err)
	}
}

// same sends a stream to all servers and compares them.
func same(t *testing.T, stream string, piece int) {
	var heard, answers [3]string
	for by := range 3 {
		s := open(by)
		heard[by], answers[by] = s.says(t, stream, piece)
		s.end()
	}
	for _, by := range []int{decisions, all} {
		if heard[by] != heard[netHTTP] {
			t.Errorf("%d: %.200q in pieces of %d:\nheard\n%s\nwhere net/http hears\n%s", by, stream, piece, heard[by], heard[netHTTP])
		}
		if answers[by] != answers[netHTTP] {
			t.Errorf("%d: %.200q in pieces of %d:\nanswered\n%s\nwhere net/http answers\n%s", by, stream, piece, answers[by], answers[netHTTP])
		}
	}
}

// For any input, the requests and responses are those of net/http.
func TestRequestsAreThoseOfNetHTTP(t *testing.T) {
	for _, stream := range oddities {
		for _, piece := range []int{1 << 20, len(post) - 5, 50} {
			synctest.Test(t, func(t *testing.T) { same(t, stream, piece) })
		}
	}
}

func FuzzRequestsAreThoseOfNetHTTP(f *testing.F) {
	for _, stream := range oddities {
		f.Add([]byte(stream), 1<<20)
		f.Add([]byte(stream), 100)
	}
	f.Fuzz(func(t *testing.T, stream []byte, piece int) {
		synctest.Test(t, func(t *testing.T) { same(t, string(stream), 1+piece&0xffff) })
	})
}
