package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
)

// An upstream that responds before it has read the request still gets the complete body. By default, Go's server would
// end the body when the response begins.
func TestBodyIsWholeThoughTheAnswerCameFirst(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.ReadFull(r.Body, make([]byte, 3))
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%d %v", n+3, err)
	}))
	defer upstream.Close()
	target, _ := url.Parse(upstream.URL)
	p, err := New([]Upstream{{Name: "up", URL: target, Routes: []Route{{}}}}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(p)
	defer front.Close()

	for name, framing := range map[string][2]string{
		"chunked": {"Transfer-Encoding: chunked", "1e\r\n%s\r\n0\r\n\r\n"},
		"length":  {"Content-Length: 40", "%s"},
	} {
		c, err := net.Dial("tcp", front.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		begin := "0123456789"
		if name == "chunked" {
			begin = "a\r\n0123456789\r\n"
		}
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n\r\n%s", framing[0], begin)
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, nil) // the head of the response arrives before the rest is sent
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		fmt.Fprintf(c, framing[1], strings.Repeat("x", 30))
		got, err := io.ReadAll(resp.Body)
		if string(got) != "40 <nil>" || err != nil {
			t.Errorf("%s: the upstream says %q, %v; want all 40 bytes and a clean end", name, got, err)
		}
		_ = c.Close()
	}
}

// A body that a refused caller still sends is never read as another request.
func TestUnreadBodyIsNoRequest(t *testing.T) {
	upstream := httptest.NewServer(http.NotFoundHandler())
	defer upstream.Close()
	target, _ := url.Parse(upstream.URL)
	for _, most := range []int64{0, 1000} {
		p, err := New([]Upstream{{Name: "up", URL: target, Routes: []Route{{}}, MaxBody: most}}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		u := p.Upstreams()["up"]
		u.Breaker("").ForceOpen(u.Now(), 0)
		front := httptest.NewServer(p)
		for _, framing := range []string{"Content-Length: 300000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n493e0\r\n"} {
			c, err := net.Dial("tcp", front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			go func() { // the body looks like requests
				body := strings.Repeat("GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n", 300000/40+1)[:300000]
				fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: localhost\r\n%s%s", framing, body)
				if strings.Contains(framing, "chunked") {
					fmt.Fprint(c, "\r\n0\r\n\r\n")
				}
				_ = c.(*net.TCPConn).CloseWrite()
			}()
			answers := 0
			for r := bufio.NewReader(c); answers < 3; answers++ {
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					break
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				if resp.Close {
					answers++
					break
				}
			}
			if answers > 1 {
				t.Errorf("%q with max body %d: %d answers to one request", framing, most, answers)
			}
			_ = c.Close()
		}
		front.Close()
	}
}
