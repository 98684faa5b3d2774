//go:build unix

package attack

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// A victim is an upstream that records its requests.
type victim struct {
	url string

	mu   sync.Mutex
	came []came
}

// A came is a request at the victim.
type came struct {
	method, uri string
	header      http.Header
	trailer     http.Header
	body        string
}

// newVictim starts an upstream that responds 200 to every request.
func newVictim(t testing.TB) *victim {
	v := &victim{}
	s := httptest.NewServer(v)
	t.Cleanup(s.Close)
	v.url = s.URL
	return v
}

func (v *victim) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return // truncated, so not a request
	}
	v.mu.Lock()
	v.came = append(v.came, came{r.Method, r.RequestURI, r.Header.Clone(), r.Trailer.Clone(), string(b)})
	v.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}")
}

// take returns the requests since the last call.
func (v *victim) take() []came {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := v.came
	v.came = nil
	return all
}

// say sends bytes on a separate connection and returns the response.
func say(t testing.TB, address, request string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	b, _ := io.ReadAll(resp.Body)
	resp.Body = io.NopCloser(strings.NewReader(string(b)))
	return resp
}

// request returns an HTTP/1.1 request on a connection that ends with it.
func request(method, target, host, body string, fields ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Length: %d\r\n", method, target, host, len(body))
	for _, f := range fields {
		b.WriteString(f + "\r\n")
	}
	b.WriteString("\r\n" + body)
	return b.String()
}

// h2c returns a client that uses HTTP/2 without encryption.
func h2c() *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: tr, Timeout: patience}
}

// text reads the body of a response.
func text(resp *http.Response) string {
	b, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return string(b)
}
