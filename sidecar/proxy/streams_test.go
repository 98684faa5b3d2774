package proxy

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
)

// h2c returns a client that uses HTTP/2 without encryption and without an upgrade.
func h2c(t testing.TB) *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

func TestBothProtocolsOnOnePort(t *testing.T) {
	address := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL) }))
	resp, err := h2c(t).Get("http://" + address + "/a%2Fb?c;d")
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, resp); resp.ProtoMajor != 2 || got != "/a%2Fb?c;d" {
		t.Errorf("h2c: %s, %q", resp.Proto, got)
	}
	resp = do(t, "GET", "http://"+address+"/", "")
	if text(t, resp); resp.ProtoMajor != 1 {
		t.Errorf("HTTP/1.1: %s", resp.Proto)
	}
}

func TestTLSAndHTTP2ByALPN(t *testing.T) {
	cert, pool := certificate(t)
	p := newProxy(t, up(newWire(t).url, brisk()))
	address := listen(t, p, func(s *http.Server) {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}
	})
	for _, h2 := range []bool{true, false} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "localhost"}, ForceAttemptHTTP2: h2}
		resp, err := (&http.Client{Transport: tr, Timeout: patience}).Get("https://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		if text(t, resp); (resp.ProtoMajor == 2) != h2 || resp.StatusCode != http.StatusOK {
			t.Errorf("h2 %v: %s %s", h2, resp.Proto, resp.Status)
		}
		tr.CloseIdleConnections()
	}
}

func certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// Each event must arrive before the upstream writes the next one.
func TestEventsAreFlushedAtOnce(t *testing.T) {
	next := make(chan bool)
	address := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		for i := range 3 {
			<-next
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
		}
	}))
	for _, client := range []*http.Client{h2c(t), {Timeout: patience}} {
		resp, err := client.Get("http://" + address + "/")
		if err != nil {
			t.Fatal(err)
		}
		body := bufio.NewReader(resp.Body)
		for i := range 3 {
			next <- true
			line, err := body.ReadString('\n')
			if want := fmt.Sprintf("data: %d\n", i); line != want || err != nil {
				t.Fatalf("%s: got %q, %v; want %q", resp.Proto, line, err, want)
			}
			_, _ = body.ReadString('\n')
		}
		_ = resp.Body.Close()
	}
}

// echo answers each line of the body as it arrives.
func echo(w http.ResponseWriter, r *http.Request) {
	c := http.NewResponseController(w)
	_ = c.EnableFullDuplex()
	_ = c.Flush()
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		fmt.Fprintln(w, lines.Text())
		_ = c.Flush()
	}
}

// The response arrives while the request is still being written.
func TestBothWaysAtOnce(t *testing.T) {
	address := before(t, http.HandlerFunc(echo))
	body, in := io.Pipe()
	req, _ := http.NewRequest("POST", "http://"+address+"/", body)
	resp, err := h2c(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(resp.Body)
	for i := range 5 {
		fmt.Fprintln(in, i)
		if line, err := out.ReadString('\n'); line != fmt.Sprintln(i) || err != nil {
			t.Fatalf("got %q, %v; want %d", line, err, i)
		}
	}
	_ = in.Close()
	if rest := text(t, resp); rest != "" {
		t.Errorf("left %q", rest)
	}
}

// The first attempt is throttled while the caller has sent a part of its body and waits for a response. The second
// attempt must not wait for more of the body.
func TestBothWaysAtOnceAfterARetry(t *testing.T) {
	var tries turns
	address := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if tries.next() == 1 {
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = bufio.NewReader(r.Body).ReadString('\n')
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		echo(w, r)
	}))
	body, in := io.Pipe()
	go fmt.Fprintln(in, "first")
	req, _ := http.NewRequest("POST", "http://"+address+"/", body)
	resp, err := h2c(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(resp.Body)
	if line, err := out.ReadString('\n'); line != "first\n" || err != nil {
		t.Fatalf("got %q, %v", line, err)
	}
	fmt.Fprintln(in, "second")
	_ = in.Close()
	if rest, _ := io.ReadAll(out); string(rest) != "second\n" {
		t.Errorf("left %q", rest)
	}
}

func TestTrailersBothWays(t *testing.T) {
	sent := make(chan string, 1)
	address := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.Copy(w, r.Body)
		sent <- r.Trailer.Get("X-Mine")
		w.Header().Set("X-Sum", "7")
	}))
	req, _ := http.NewRequest("PUT", "http://"+address+"/", io.LimitReader(strings.NewReader("hello"), 9))
	req.Trailer = http.Header{"X-Mine": {"8"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, resp); got != "hello" || resp.Trailer.Get("X-Sum") != "7" {
		t.Errorf("answer %q, trailers %v", got, resp.Trailer)
	}
	if got := wait(t, "the request", sent); got != "8" {
		t.Errorf("the upstream got the trailer %q, want 8", got)
	}
}

// An upgrade turns the connection into a bidirectional pipe. It counts as one call.
func TestUpgrade(t *testing.T) {
	address := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "chat" || r.Header.Get("Sec-Websocket-Key") != "k" {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer c.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "got "+line)
		_ = rw.Flush()
	}))
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(c, "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: chat\r\nSec-Websocket-Key: k\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answered %v, %v", resp, err)
	}
	if got := resp.Header[httpx.CorrelationHeader]; len(got) != 1 {
		t.Errorf("correlation ids %q, want one", got)
	}
	fmt.Fprintln(c, "hello")
	if b, err := io.ReadAll(r); string(b) != "got hello\n" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}

// When the caller disconnects, the upstream's request ends and does not count against the upstream.
func TestCallerWhoLeavesCancelsTheUpstream(t *testing.T) {
	arrived, left := make(chan bool, 10), make(chan bool, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server watch for a disconnect
		arrived <- true
		<-r.Context().Done()
		left <- true
	}))
	defer s.Close()
	policy := brisk()
	policy.Breaker = breaker.Config{Consecutive: 1}
	ended := make(chan weir.Ended, 10)
	p, err := New([]Upstream{up(s.URL, policy)}, weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { ended <- e }}})
	if err != nil {
		t.Fatal(err)
	}
	address := listen(t, p)
	for _, client := range []*http.Client{h2c(t), {}} {
		for _, body := range []string{"", "hello"} {
			ctx, leave := context.WithCancel(t.Context())
			go func() {
				wait(t, "the request", arrived)
				leave()
			}()
			req, _ := http.NewRequestWithContext(ctx, "PUT", "http://"+address+"/", strings.NewReader(body))
			if _, err := client.Do(req); err == nil {
				t.Error("there was an answer")
			}
			wait(t, "the upstream to hear of it", left)
			if e := wait(t, "the event", ended); e.Outcome.Class.String() != "canceled" {
				t.Errorf("outcome %+v", e.Outcome)
			}
		}
	}
	if b := p.Upstreams()["up"].Look(0).Breakers[0]; b.Phase != breaker.Closed || b.Failed > 0 {
		t.Errorf("the breaker is %v with %d failures", b.Phase, b.Failed)
	}
}

// The same when the caller disconnects during the response.
func TestCallerWhoLeavesAmidTheAnswer(t *testing.T) {
	left := make(chan bool)
	address := before(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "first")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		left <- true
	}))
	for _, client := range []*http.Client{h2c(t), {}} {
		ctx, leave := context.WithCancel(t.Context())
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://"+address+"/", nil)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = bufio.NewReader(resp.Body).ReadString('\n')
		leave()
		wait(t, "the upstream to hear of it", left)
		_ = resp.Body.Close()
	}
}

// Interim responses are passed on. Their fields do not appear in the final response.
func TestEarlyHintsPass(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	c, err := net.Dial("tcp", listen(t, newProxy(t, up(w.url, brisk()))))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(c, get("/"))
	r := bufio.NewReader(c)
	hints, err := http.ReadResponse(r, nil)
	if err != nil || hints.StatusCode != 103 || hints.Header.Get("Link") != "</a>" {
		t.Fatalf("hints %+v, %v", hints, err)
	}
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, resp); got != "ok" || len(resp.Header[httpx.CorrelationHeader]) != 1 || resp.Header.Get("Link") != "" {
		t.Errorf("answered %q with %v", got, resp.Header)
	}
}
