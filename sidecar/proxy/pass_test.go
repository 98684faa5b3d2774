package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Headers about the origin of a request that the upstream accepts are forwarded, with all their values.
func TestForwardedFieldsThatAreToPassDo(t *testing.T) {
	w := newWire(t)
	u := up(w.url, brisk())
	u.Pass = []string{"X-Forwarded-For", "Forwarded"}
	say(t, listen(t, newProxy(t, u)), get("/", "X-Forwarded-For: 10.0.0.1", "Forwarded: for=10.0.0.1", "X-Forwarded-Host: a", "X-Real-Ip: 10.0.0.2"))
	head := w.heads()[0]
	for name, want := range map[string]int{"X-Forwarded-For": 1, "Forwarded": 1, "X-Forwarded-Host": 0, "X-Real-Ip": 0} {
		if got := lines(head, name); len(got) != want {
			t.Errorf("%s: %q, want %d", name, got, want)
		}
	}
}

// An upgrade that the caller did not request is an error.
func TestNobodyGoesOverToAnotherProtocolUnasked(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n")
	if resp := say(t, listen(t, newProxy(t, up(w.url, brisk()))), get("/")); resp.StatusCode != http.StatusBadGateway {
		t.Errorf("got %s", resp.Status)
	}
}

// Connection: close in the final response is kept although an interim response came before.
func TestNewsBeforeAnAnswerKeepNoConnection(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "x")
	}))
	defer s.Close()
	p := newProxy(t, up(s.URL, brisk()))
	at := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // weir serve sets it when framing is doubtful, and during a drain
		p.ServeHTTP(w, r)
	}))
	for _, request := range []string{"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"} {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(c, request)
		in := bufio.NewReader(c)
		early, err := http.ReadResponse(in, nil)
		if err != nil || early.StatusCode != http.StatusEarlyHints || early.Header.Get("Link") == "" {
			t.Fatal(early, err)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.ReadAll(resp.Body)
		if _, err := in.ReadByte(); err != io.EOF || !resp.Close || resp.Header.Get("Link") != "" {
			t.Errorf("%.4s: the end is said %v, then %v; %v", request, resp.Close, err, resp.Header)
		}
		c.Close()
	}
}
