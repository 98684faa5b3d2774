//go:build unix

package attack

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// A caller writes requests that weir and the server behind it may interpret differently: in paths, fields, trailers and chunks,
// over both versions of HTTP. The server gets exactly the request that weir decided on.
func TestAttackOnTheWire(t *testing.T) {
	v := newVictim(t)
	w := served.Start(t, local+fmt.Sprintf("upstreams:\n  up: {url: %q}\n%s", v.url+"/inside", bystander(t)))
	at := w.Serve.Listen
	beside(t, at, func() {
		for _, path := range []string{
			"/up/../../admin", "/up/../admin", "/up/%2e%2e/%2e%2e/admin", "/up/..%2f..%2fadmin", `/up/..\..\admin`, "/up/..;/admin", "/up/a/../../admin", "/up//../../admin", "/up/%252e%252e/admin",
		} {
			for what, status := range map[string]string{
				"HTTP/1": fmt.Sprint(say(t, at, request("GET", path, at, "")).StatusCode), "HTTP/2": overHTTP2(t, at, path),
			} {
				if got := v.take(); len(got) > 0 || status != "400" {
					t.Errorf("%s over %s: answered %s, and the upstream got %+v", path, what, status, got)
				}
			}
		}
		for _, path := range []string{"/up/a b", "/up/a HTTP/1.1\r\nX-Evil: 1\r\n\r\nGET /up/b", "/up/a\tb", "/up/a?b c", "/up/\x00"} {
			if status := overHTTP2(t, at, path); status != "400" && status != "PROTOCOL_ERROR" || len(v.take()) > 0 {
				t.Errorf("%q: answered %s", path, status)
			}
		}
		say(t, at, request("GET", "/up/x", at, "", "X-Weir-Attempts: 1", "X-Real-Ip: 6.6.6.6", "X_Forwarded_For: 6.6.6.6", "X-Forwarded-For: 6.6.6.6", "Forwarded: for=6.6.6.6",
			"X_Real_IP: 6.6.6.6", "X-Original-URL: /admin", "X-HTTP-Method-Override: DELETE", "Transfer_Encoding: chunked", "Connection: X-Mine", "X-Mine: 6.6.6.6"))
		if got := v.take(); len(got) != 1 || strings.Contains(fmt.Sprint(got[0].header), "6.6.6.6") || len(got[0].header) > 1 || got[0].uri != "/inside/x" {
			t.Errorf("the upstream got %+v", got)
		}
		chunked := "POST /up/x HTTP/1.1\r\nHost: " + at + "\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
		say(t, at, chunked+"Trailer: X-Sum, Authorization\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 1\r\nAuthorization: Bearer evil\r\nX-Evil: 1\r\n\r\n")
		if got := v.take(); len(got) != 1 || fmt.Sprint(got[0].trailer) != "map[X-Sum:[1]]" {
			t.Errorf("the upstream got %+v", got)
		}
		for _, bad := range []string{"zz\r\n", "5\r\nhelloX\r\n0\r\n\r\n"} {
			if resp := say(t, at, chunked+"\r\n"+bad); resp.StatusCode != 400 {
				t.Errorf("chunks %q: answered %s", bad, resp.Status)
			}
			v.take()
		}
		for _, wish := range []string{"h2c", "H2C", "websocket, h2c", "HTTP/2.0", "TLS/1.0"} { // an upgrade would bypass weir
			say(t, at, "GET /up/x HTTP/1.1\r\nHost: "+at+"\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: "+wish+"\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
			if got := v.take(); len(got) != 1 || got[0].header.Get("Upgrade") != "" || got[0].header.Get("Http2-Settings") != "" {
				t.Errorf("a wish for %s: the upstream got %+v", wish, got)
			}
		}
		smuggle(t, at, v)
	})
}

// smuggle sends a length and chunks. The chunks count, the length is not forwarded, and the following bytes are not a request.
func smuggle(t *testing.T, at string, v *victim) {
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	in := bufio.NewReader(c)
	for _, second := range []string{"Transfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3"} {
		fmt.Fprintf(c, "POST /up/one HTTP/1.1\r\nHost: %s\r\n%s\r\n\r\n5\r\nhello\r\n0\r\n\r\n", at, second)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = text(resp)
		if got := v.take(); len(got) != 1 || got[0].body != "hello" || got[0].header.Get("Content-Length") != "" {
			t.Errorf("%q: the upstream got %+v", second, got)
		}
		if both := strings.Contains(second, "Length"); resp.Close != both {
			t.Errorf("%q: the connection closes: %v", second, resp.Close)
		}
	}
	fmt.Fprintf(c, "GET /up/smuggled HTTP/1.1\r\nHost: %s\r\n\r\n", at)
	if b, err := io.ReadAll(in); err == nil && len(b) > 0 {
		t.Errorf("after both the connection answers %q", b)
	}
	if got := v.take(); len(got) > 0 {
		t.Errorf("the upstream got %+v", got)
	}
}

// An upstream's name resolves to weir: its calls, its admin listener, its decisions.
func TestAttackWeirAsItsOwnUpstream(t *testing.T) {
	self := outside()
	if self == "127.0.0.1" {
		t.Fatal("this machine has no address but loopback, where weir check refuses such a file")
	}
	yaml := func(calls, admin, decide string) string {
		return fmt.Sprintf(`
listen: 0.0.0.0:0
admin: 0.0.0.0:0
admin_open: true
decide: {listen: "0.0.0.0:0", open: true}
upstreams:
  calls: {url: "http://%[1]s:%[2]s/calls"}
  admin: {url: "http://%[1]s:%[3]s"}
  decide: {url: "http://%[1]s:%[4]s"}
%[5]s`, self, calls, admin, decide, bystander(t))
	}
	port := func(address string) string {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	w := served.Start(t, yaml("1", "1", "1"))
	// It now has its ports. A port that was chosen earlier could belong to another process.
	w.Reload(yaml(port(w.Serve.Listen), port(w.Serve.Admin), port(w.Serve.Decide)), "reloaded")
	at := "127.0.0.1:" + port(w.Serve.Listen)
	beside(t, at, func() {
		for _, path := range []string{"/calls/x", "/admin/v1/status", "/admin/metrics", "/decide/healthz"} {
			if resp := say(t, at, request("GET", path, at, "")); resp.StatusCode != http.StatusLoopDetected || !strings.Contains(text(resp), "weir itself") {
				t.Errorf("%s: answered %s", path, resp.Status)
			}
		}
	})
}

// overHTTP2 requests a path unchanged and returns the status.
func overHTTP2(t testing.TB, address, path string) (status string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", address}, {":path", path}} {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	_, _ = io.WriteString(c, http2.ClientPreface)
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	_ = f.WriteSettings()
	_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return err.Error()
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return frame.ErrCode.String()
		case *http2.GoAwayFrame:
			return frame.ErrCode.String()
		}
	}
}
