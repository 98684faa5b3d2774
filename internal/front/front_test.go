package front

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A head is recognized in whatever pieces it arrives, and nothing else is recognized as one.
func TestHeadsThatSayTwoThings(t *testing.T) {
	const plain = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
	for name, c := range map[string]struct {
		bytes string
		both  bool
	}{
		"one length":         {plain, false},
		"one coding":         {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
		"both":               {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true},
		"the other way":      {"POST / HTTP/1.1\r\nTRANSFER-ENCODING: chunked\r\nx: y\r\ncontent-length:5\r\n\r\n0\r\n\r\n", true},
		"bare line feeds":    {"POST / HTTP/1.1\nTransfer-Encoding: chunked\nContent-Length: 5\n\n", true},
		"one after another":  {plain + "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + plain, false},
		"the second one":     {plain + "\r\nPOST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", true},
		"names like them":    {"POST / HTTP/1.1\r\nX-Content-Length: 5\r\nContent-Length-X: 5\r\nTransfer-Encoding: chunked\r\n\r\n", false},
		"HTTP/2":             {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nContent-Length: 5\nTransfer-Encoding: chunked\n", false},
		"a long line before": {"GET /" + strings.Repeat("a", 9000) + " HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", true},
	} {
		for piece := 1; piece < 40; piece += 3 {
			var h heads
			both := false
			for rest := []byte(c.bytes); len(rest) > 0; {
				n := min(piece, len(rest))
				both = h.see(rest[:n]) || both
				rest = rest[n:]
			}
			if both != c.both {
				t.Errorf("%s in pieces of %d: said %v", name, piece, both)
			}
		}
	}
}

// serve serves a handler with a Listener.
func serve(t *testing.T, secure bool) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Doubtful(r.Context()) {
			w.Header().Set("Connection", "close")
		}
		b, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %v %s", r.Proto, r.TLS != nil, b)
	}))
	s.Config.ConnContext = Context
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetHTTP2(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	if secure {
		s.StartTLS() // for its certificate
		config := s.TLS.Clone()
		config.NextProtos = []string{"h2", "http/1.1"}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		front := Listen(l, config, nil)
		go func() { _ = s.Config.Serve(front) }()
		s.URL = "https://" + l.Addr().String()
	} else {
		s.Listener = Listen(s.Listener, nil, nil)
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func TestDoubtfulConnectionsEnd(t *testing.T) {
	s := serve(t, false)
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(c)
	ask := func(head, body string) *http.Response {
		fmt.Fprintf(c, "POST / HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n%s", head, body)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		if string(b) != "HTTP/1.1 false hello" {
			t.Errorf("%s: got %q", head, b)
		}
		return resp
	}
	for _, good := range [][2]string{{"Content-Length: 5", "hello"}, {"Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n"}} {
		if resp := ask(good[0], good[1]); resp.Close {
			t.Errorf("%s: the connection ended", good[0])
		}
	}
	if resp := ask("Transfer-Encoding: chunked\r\nContent-Length: 3", "5\r\nhello\r\n0\r\n\r\n"); !resp.Close {
		t.Error("both: the connection goes on")
	}
	if _, err := in.ReadByte(); err != io.EOF {
		t.Errorf("after both: %v, want the end", err)
	}
}

// With TLS both versions of HTTP work as before, and handlers see the TLS state.
func TestBothVersionsOverTLS(t *testing.T) {
	s := serve(t, true)
	for _, two := range []bool{false, true} {
		tr := s.Client().Transport.(*http.Transport).Clone()
		tr.Protocols = new(http.Protocols)
		tr.Protocols.SetHTTP1(!two)
		tr.Protocols.SetHTTP2(two)
		client := &http.Client{Transport: tr, Timeout: 20 * time.Second}
		resp, err := client.Post(s.URL, "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		client.CloseIdleConnections()
		if want := fmt.Sprintf("HTTP/%d.%d true hello", resp.ProtoMajor, resp.ProtoMinor); string(b) != want || (resp.ProtoMajor == 2) != two {
			t.Errorf("got %s: %s", resp.Proto, b)
		}
	}
	resp, err := http.Get(strings.Replace(s.URL, "https", "http", 1)) // a client without TLS does not disturb the server
	if err == nil {
		_ = resp.Body.Close()
	}
	if resp, err := s.Client().Get(s.URL); err != nil || resp.StatusCode != 200 {
		t.Errorf("afterwards: %v, %v", resp, err)
	}
}

func BenchmarkSee(b *testing.B) {
	p := []byte(strings.Repeat("some text that is a body, with lines as they come\n", 700))
	b.SetBytes(int64(len(p)))
	var h heads
	for b.Loop() {
		h.see(p)
	}
}
