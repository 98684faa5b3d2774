package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/retry"
	"github.com/seed1158cd35/weir/sidecar/plain"
)

// patience limits every wait of these tests.
const patience = 20 * time.Second

// brisk returns a policy with very short retry delays.
func brisk() weir.Policy {
	return weir.Policy{Retry: retry.Config{Base: time.Millisecond, Cap: time.Millisecond}}
}

// up returns an upstream that matches all paths.
func up(address string, p weir.Policy) Upstream {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return Upstream{Name: "up", URL: u, Routes: []Route{{}}, Policy: p}
}

func newProxy(t testing.TB, upstreams ...Upstream) *Proxy {
	t.Helper()
	p, err := New(upstreams, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// listen serves a handler as weir serve does, and returns its address.
func listen(t testing.TB, h http.Handler, options ...func(*http.Server)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler: h, Protocols: protocols, ReadHeaderTimeout: patience,
		DisableGeneralOptionsHandler: true, ErrorLog: log.New(io.Discard, "", 0),
	}
	for _, o := range options {
		o(s)
	}
	at := l.Addr().String()
	wait := func(context.Context) error { return nil }
	if s.TLSConfig != nil {
		l = tls.NewListener(l, s.TLSConfig)
	} else {
		p := plain.New(l, s)
		l, wait = p, p.Wait
	}
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Serve(l) })
	t.Cleanup(func() {
		_ = s.Close()
		wg.Wait()
		ended, end := context.WithCancel(context.Background())
		end()
		_ = wait(ended)
	})
	return at
}

// before serves a proxy with a brisk policy in front of a handler.
func before(t testing.TB, h http.Handler) (address string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return listen(t, newProxy(t, up(s.URL, brisk())))
}

// A wire is an upstream that records requests byte for byte and answers each with the same bytes. It accepts no bodies.
type wire struct {
	url    string
	answer string
	mu     sync.Mutex
	head   []string // the heads of all requests, up to the empty line
	conns  []net.Conn
}

// newWire returns a wire that answers with an empty 200.
func newWire(t testing.TB) *wire {
	return newWireOf(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
}

func newWireOf(t testing.TB, answer string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{url: "http://" + l.Addr().String(), answer: answer}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.mu.Lock()
			w.conns = append(w.conns, c)
			w.mu.Unlock()
			wg.Go(func() { w.talk(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); w.hangUp(); wg.Wait() })
	return w
}

func (w *wire) talk(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		head, err := readHead(r)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.head = append(w.head, head)
		w.mu.Unlock()
		if _, err = io.WriteString(c, w.answer); err != nil || !strings.HasSuffix(w.answer, "\r\n\r\n") && !strings.Contains(w.answer, "Content-Length") {
			return
		}
	}
}

// hangUp closes all connections.
func (w *wire) hangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
}

// readHead reads up to the empty line.
func readHead(r *bufio.Reader) (string, error) {
	var b bytes.Buffer
	for {
		line, err := r.ReadString('\n')
		if b.WriteString(line); err != nil || line == "\r\n" {
			return b.String(), err
		}
	}
}

// heads returns the heads of all requests so far.
func (w *wire) heads() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.head...)
}

// lines returns the lines of a head after the first, or only the ones with the field name if it is not empty.
func lines(head, name string) []string {
	var out []string
	for _, line := range strings.Split(strings.TrimSuffix(head, "\r\n\r\n"), "\r\n")[1:] {
		if n, _, _ := strings.Cut(line, ":"); name == "" || strings.EqualFold(n, name) {
			out = append(out, line)
		}
	}
	return out
}

// firstLine returns the request line of a head.
func firstLine(head string) string {
	line, _, _ := strings.Cut(head, "\r\n")
	return line
}

// say sends bytes on a new connection and reads one response.
func say(t testing.TB, address, request string) *http.Response {
	t.Helper()
	resp, err := tell(address, request)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	return resp
}

func tell(address, request string) (*http.Response, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, request); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(bytes.NewReader(b))
	return resp, err
}

// get returns a GET request as raw bytes.
func get(target string, fields ...string) string {
	return fmt.Sprintf("GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%sConnection: close\r\n\r\n", target, joined(fields))
}

func joined(fields []string) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	return b.String()
}

// do sends a request with a client that adds no headers.
func do(t testing.TB, method, url, body string, fields ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header[name] = append(req.Header[name], value)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// text reads a body to its end.
func text(t testing.TB, resp *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("read the answer: %v", err)
	}
	_ = resp.Body.Close()
	return string(b)
}

// wait receives a value, and fails after patience.
func wait[T any](t testing.TB, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v for %s", patience, what)
	}
	return v
}

// withLocal returns a request that arrived at the given local address.
func withLocal(r *http.Request, local net.Addr) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
}
