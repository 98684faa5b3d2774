package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// A counting listener counts the writes to its connections.
type counting struct {
	net.Listener
	writes atomic.Int64
}

type countedConn struct {
	net.Conn
	writes *atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, &l.writes}, err
}

func (c countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// counted serves a handler and returns its address and the number of writes to its callers.
func counted(t *testing.T, h http.Handler) (address string, writes *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{Listener: l}
	s := &http.Server{Handler: h, ReadHeaderTimeout: patience}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(c) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return l.Addr().String(), &c.writes
}

// A short response with a length is one write. On a busy machine, the flush of late bodies may add a few second writes.
func TestAnAnswerWithALengthIsWrittenOnce(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1024\r\n\r\n"+strings.Repeat("x", 1024))
	address, writes := counted(t, newProxy(t, up(w.url, brisk())))
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	const n = 200
	for range n {
		fmt.Fprint(c, "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, resp); resp.ContentLength != 1024 || len(got) != 1024 {
			t.Fatalf("%d bytes of %d", len(got), resp.ContentLength)
		}
	}
	if got := writes.Load(); got > n+n/10 {
		t.Errorf("%d answers in %d writes", n, got)
	}
}

// The head and the arrived part of a response are passed on before the rest arrives, with or without a length.
func TestWhatHasComeOfAnAnswerIsPassedOn(t *testing.T) {
	for _, length := range []string{"", "12"} {
		next := make(chan bool)
		address := before(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			_ = http.NewResponseController(w).Flush()
			for i := range 3 {
				<-next
				fmt.Fprintf(w, "%4d", i)
				_ = http.NewResponseController(w).Flush()
			}
		}))
		for _, client := range []*http.Client{h2c(t), {Timeout: patience}} {
			resp, err := client.Get("http://" + address + "/") // the head arrives before the body
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				next <- true
				got := make([]byte, 4)
				if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != fmt.Sprintf("%4d", i) {
					t.Fatalf("length %q, %s: got %q, %v", length, resp.Proto, got, err)
				}
			}
			_ = resp.Body.Close()
		}
	}
}
