package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
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

// minimal is a writer without Flush.
type minimal struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (p *minimal) Header() http.Header         { return p.header }
func (p *minimal) WriteHeader(code int)        { p.code = code }
func (p *minimal) Write(b []byte) (int, error) { return p.body.Write(b) }

func ask(t *testing.T, ctx context.Context, h http.HandlerFunc) (*minimal, error) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	w := &minimal{header: make(http.Header)}
	r := httptest.NewRequest("GET", "/", nil).WithContext(ctx)
	r.Host = "localhost"
	return w, newProxy(t, up(s.URL, brisk())).Serve("up", w, r)
}

// A writer without Flush gets the complete response. The sidecar's own requests use such writers.
func TestAnAnswerIsWholeForAWriterThatCannotFlush(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"of known length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "40960")
			_, _ = io.WriteString(w, strings.Repeat("x", 40960))
		},
		"in chunks": func(w http.ResponseWriter, _ *http.Request) {
			for range 4 {
				_, _ = io.WriteString(w, strings.Repeat("x", 10240))
				_ = http.NewResponseController(w).Flush()
			}
		},
	} {
		w, err := ask(t, t.Context(), h)
		if w.body.Len() != 40960 || err != nil {
			t.Errorf("%s: %d bytes of 40960, %v", name, w.body.Len(), err)
		}
	}
}

// Serve returns an error if the response breaks off or its context ends. It does not panic.
func TestServeSaysThatAnAnswerBrokeOff(t *testing.T) {
	w, err := ask(t, t.Context(), func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, strings.Repeat("x", 50))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	if err == nil {
		t.Errorf("%d of 100 bytes, and no error", w.body.Len())
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := ask(t, left, func(http.ResponseWriter, *http.Request) {}); err == nil {
		t.Error("nobody waits, and no error")
	}
}

// A response without a Content-Type stays without one, so that a browser does not render it as a page.
func TestAnAnswerWithoutATypeGetsNone(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 200 OK\r\nContent-Length: 28\r\n\r\n<html><script>x()</script>\r\n")
	resp, err := http.Get("http://" + listen(t, newProxy(t, up(w.url, brisk()))) + "/")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if v, ok := resp.Header["Content-Type"]; ok {
		t.Errorf("got %q", v)
	}
}

// Over HTTP/2, a complete body may arrive before its stream ends. It is passed on, and the stream is not aborted.
func TestAWholeBodyIsPassedOnBeforeItsStreamEnds(t *testing.T) {
	hold := make(chan bool)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "ping")
		_ = http.NewResponseController(w).Flush()
		<-hold
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	end := sync.OnceFunc(func() { close(hold) })
	t.Cleanup(end)
	p := newProxy(t, up(s.URL, brisk()))
	known := x509.NewCertPool()
	known.AddCert(s.Certificate())
	p.table.Load().targets["up"].base.Transport.TLSClientConfig = &tls.Config{RootCAs: known}
	c, err := net.Dial("tcp", listen(t, p))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for range 2 { // an aborted response would end the connection
		fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // so that a hang fails
		var got []byte
		for b := make([]byte, 4096); !bytes.HasSuffix(got, []byte("ping")); {
			n, err := c.Read(b)
			if got = append(got, b[:n]...); err != nil {
				t.Fatalf("got %q, %v", got, err)
			}
		}
		end()
	}
}

// An invalid status is an error.
func TestAStatusBelow200EndsNoRequest(t *testing.T) {
	for _, status := range []string{"099 Low", "+20 Odd"} {
		w := newWireOf(t, "HTTP/1.1 "+status+"\r\nContent-Length: 2\r\n\r\nok")
		resp, err := http.Get("http://" + listen(t, newProxy(t, up(w.url, brisk()))) + "/")
		if err != nil {
			t.Errorf("%s: %v", status, err)
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: got %d", status, resp.StatusCode)
		}
	}
}

// Interim responses contain neither weir's headers nor headers of the upstream's connection.
func TestNewsDoNotSpeakInWeirsName(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 103 Early Hints\r\nX-Weir-Gave-Up: forged\r\nConnection: X-Of-It\r\nX-Of-It: forged\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	c, err := net.Dial("tcp", listen(t, newProxy(t, up(w.url, brisk()))))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	got, err := io.ReadAll(c)
	if err != nil || strings.Contains(string(got), "forged") || !strings.Contains(string(got), "Link: </a>") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestTrailerOfTheNameOfAHeaderStandsOnce(t *testing.T) {
	w := httptest.NewRecorder()
	resp := &http.Response{StatusCode: 200, ProtoMajor: 1, ContentLength: -1, Header: http.Header{"X-Weir-Cost": {"1"}}, Trailer: http.Header{"X-Weir-Cost": {"2"}}, Body: io.NopCloser(strings.NewReader("a"))}
	if err := bring(w, httptest.NewRequest("GET", "/", nil), resp); err != nil {
		t.Fatal(err)
	}
	if got := w.Result().Trailer["X-Weir-Cost"]; len(got) != 1 || got[0] != "2" {
		t.Errorf("trailer %q, want 2 alone", got)
	}
}
