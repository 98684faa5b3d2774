package proxy

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// A path cannot leave its route with dots, escapes or backslashes, however the upstream resolves them.
func TestPathsStayWhereTheirRouteLeads(t *testing.T) {
	w := newWire(t)
	u := up(w.url+"/api", brisk())
	u.Routes = []Route{{Path: "/up/", Strip: true}, {Path: "/kept/"}}
	address := listen(t, newProxy(t, u))
	for _, rest := range []string{
		"/..", "/../admin", "/../../admin", "/a/../../admin", "/%2e%2e/admin", "/.%2E/admin", "/%2E./%2e./admin", "/..%2fadmin", "/a%2f..%2f..%2fadmin",
		"/..;/admin", "/..;a=b/admin", `/..\admin`, "/%2e%2e%5cadmin", "/%252e%252e/admin", "/..%00/admin", "/..%20/admin", "//../../admin", "/a//../../admin", "/..#",
	} {
		for _, route := range []string{"/up", "/kept"} {
			resp := say(t, address, get(route+rest))
			if e := failureOf(t, resp); resp.StatusCode != 400 || e.Code != refuse.ValidationError || !strings.Contains(e.Message, "above") {
				t.Errorf("%s%s: answered %s: %+v", route, rest, resp.Status, e)
			}
		}
	}
	if heads := w.heads(); len(heads) > 0 {
		t.Errorf("%d reached the upstream: %q", len(heads), heads[0])
	}
	for _, rest := range []string{"/a/../b", "/a/b/../../c", "/...", "/a..b", "/.well-known/x"} {
		if resp := say(t, address, get("/up"+rest)); resp.StatusCode != 200 {
			t.Errorf("%s: answered %s", rest, resp.Status)
		}
	}
}

// A path with dot segments is refused where the path determines the operation, because it is ambiguous.
func TestPathsThatSayTwoThingsAreRefused(t *testing.T) {
	w := newWire(t)
	u := up(w.url, brisk())
	u.Policy.Operations = []weir.Operation{{Name: "cheap", Path: "/cheap"}, {Name: "dear", Path: "/dear"}}
	address := listen(t, newProxy(t, u))
	for _, target := range []string{"/cheap/../dear", "/cheap/%2e%2e/dear", "/cheap/./x", "/x/.", "/cheap/..%2f../dear/%2e%2e/cheap", "/cheap/x;/..;/dear"} {
		if resp := say(t, address, get(target)); resp.StatusCode != 400 {
			t.Errorf("%s: answered %s", target, resp.Status)
		}
	}
	if heads := w.heads(); len(heads) > 0 {
		t.Errorf("%d reached the upstream: %q", len(heads), heads[0])
	}
}

// In HTTP/2, a path can contain bytes that no request line can.
func TestPathsOfHTTP2ThatBreakTheRequestLine(t *testing.T) {
	w := newWire(t)
	address := listen(t, newProxy(t, up(w.url, brisk())))
	for _, path := range []string{"/a b", "/a HTTP/1.1\r\nX-Evil: 1", "/a\tb", "/a\x7f", "/a?b c", "/ ", "/a\u0000"} {
		status := overHTTP2(t, address, path)
		if status != "400" && status != "PROTOCOL_ERROR" { // PROTOCOL_ERROR comes from net/http
			t.Errorf("%q: answered %q", path, status)
		}
	}
	if heads := w.heads(); len(heads) > 0 {
		t.Errorf("%d reached the upstream: %q", len(heads), heads[0])
	}
	if status := overHTTP2(t, address, "/a%20b?c=%20"); status != "200" || firstLine(w.heads()[0]) != "GET /a%20b?c=%20 HTTP/1.1" {
		t.Errorf("a good one: answered %q, sent %q", status, w.heads())
	}
}

// A caller cannot forge the headers of weir or of proxies for the origin, path or method of a request, unless the
// upstream accepts them.
func TestForgedFieldsAreNotSentOn(t *testing.T) {
	forged := []string{
		"X-Weir-Attempts", "x-weir-anything", "X_Weir_Attempts", "Forwarded", "X-Forwarded-For", "X-Forwarded-Anything", "X_Forwarded_For", "X-Forwarded_For", "x_forwarded_host",
		"X-Real-Ip", "X-Real-IP", "X_Real_Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "X-Original-Url", "X-Rewrite-Url", "X-Http-Method-Override", "X-Forwarded", "Client-Ip", "CLIENT_IP", "X-Azure-ClientIP", "X-Envoy-Original-Path",
		"X_HTTP_Method_Override", "Transfer_Encoding", "Content_Length", "Host_", "Te_", "X_Correlation_Id", "Proxy_Authorization",
	}
	for _, pass := range []bool{false, true} {
		w := newWire(t)
		u := up(w.url, brisk())
		if pass {
			u.Pass = []string{"X-Real-Ip", "X_forwarded_for"}
		}
		address := listen(t, newProxy(t, u))
		for _, name := range forged {
			before := len(w.heads())
			say(t, address, get("/", name+": 6.6.6.6", "X-Good: 1", "X_good: 2", "session_id: 3"))
			head := w.heads()[before]
			wanted := pass && (strings.EqualFold(name, "X-Real-Ip") || name == "X_Forwarded_For") || strings.HasSuffix(name, "_")
			if strings.Contains(head, "6.6.6.6") != wanted {
				t.Errorf("%s, passed %v: sent %q", name, pass, head)
			}
			if len(lines(head, "X-Good")) != 1 || len(lines(head, "X_good")) != 1 || len(lines(head, "session_id")) != 1 {
				t.Errorf("%s: others are gone: %q", name, head)
			}
		}
	}
}

// Only declared and permitted trailers are forwarded.
func TestTrailersThatWereNotDeclared(t *testing.T) {
	got := make(chan http.Header, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.Trailer
	}))
	defer s.Close()
	address := listen(t, newProxy(t, up(s.URL, brisk())))
	const body = "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n"
	for name, c := range map[string]struct{ head, tail, want string }{
		"declared":                 {"Trailer: X-Sum", "X-Sum: 1", "map[X-Sum:[1]]"},
		"declared, and another":    {"Trailer: X-Sum", "X-Sum: 1\r\nX-Evil: 1\r\nAuthorization: Bearer evil", "map[X-Sum:[1]]"},
		"declared, and not there":  {"Trailer: X-Sum, X-Other", "X-Sum: 1", "map[X-Other:[] X-Sum:[1]]"},
		"none declared":            {"X-A: 1", "X-Evil: 1", "map[]"},
		"credentials are declared": {"Trailer: Authorization, X-Api-Key, Cookie, X-Sum", "X-Sum: 1\r\nAuthorization: Bearer evil\r\nX-Api-Key: evil\r\nCookie: evil=1", "map[X-Sum:[1]]"},
		"forged ones are declared": {"Trailer: X-Forwarded-For, X-Weir-Attempts, X_Real_Ip, X-Correlation-Id, X-Sum", "X-Sum: 1\r\nX-Forwarded-For: 6.6.6.6\r\nX-Weir-Attempts: 9", "map[X-Sum:[1]]"},
	} {
		resp := say(t, address, "POST / HTTP/1.1\r\nHost: localhost\r\n"+c.head+"\r\n"+body+c.tail+"\r\n\r\n")
		if resp.StatusCode != 200 {
			t.Errorf("%s: answered %s", name, resp.Status)
			continue
		}
		if trailer := wait(t, "the trailers", got); fmt.Sprint(map[string][]string(trailer)) != c.want {
			t.Errorf("%s: the upstream got %v, want %s", name, trailer, c.want)
		}
	}
}

// An upstream cannot set weir's headers, not even in trailers.
func TestTrailersOfAnswersAreNotWeirs(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, X-Weir-Cost\r\nX-Weir-Attempts: 9\r\nConnection: close\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\nX-Weir-Cost: 0\r\nX-Weir-Refused: paused\r\n\r\n")
	s := httptest.NewServer(newProxy(t, up(w.url, brisk())))
	defer s.Close()
	resp, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, resp); got != "ok" || resp.Trailer.Get("X-Sum") != "1" {
		t.Errorf("got %q with %v", got, resp.Trailer)
	}
	for _, h := range []http.Header{resp.Header, resp.Trailer} {
		for name := range h {
			if strings.HasPrefix(name, "X-Weir-") {
				t.Errorf("the upstream said %s: %v", name, h[name])
			}
		}
	}
}

// Invalid chunks are the caller's fault, and weir closes the connection because it cannot find the next request.
func TestBrokenChunksAreTheCallersMistake(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer s.Close()
	p := newProxy(t, up(s.URL, brisk()))
	address := listen(t, p)
	for name, chunks := range map[string]string{
		"no number": "zz\r\n", "a number too large": "fffffffffffffffff\r\nx", "no line end": "5\r\nhelloX\r\n0\r\n\r\n", "a bad trailer": "0\r\nbad line\r\n\r\n", "negative": "-1\r\n\r\n",
	} {
		resp := say(t, address, "PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"+chunks)
		if e := failureOf(t, resp); resp.StatusCode != 400 || e.Code != refuse.ValidationError || !strings.Contains(e.Message, "body") || !resp.Close {
			t.Errorf("%s: answered %s, closes %v: %+v", name, resp.Status, resp.Close, e)
		}
	}
	if b := p.Upstreams()["up"].Look(0).Breakers[0]; b.Failed > 0 {
		t.Errorf("the breaker counts %d failures", b.Failed)
	}
}

// weir refuses to call an upstream at its own address, however the address is written.
func TestWeirIsNoUpstreamOfItsOwn(t *testing.T) {
	for _, on := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
		l, err := net.Listen("tcp", on)
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(l.Addr().String())
		reached := make(chan string, 100)
		s := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.Host })}
		go func() { _ = s.Serve(l) }()
		other := newWire(t)
		for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
			self := up("http://"+host+":"+port, brisk())
			self.Routes = []Route{{Path: "/self/"}}
			p := newProxy(t, self, func() Upstream { u := up(other.url, brisk()); u.Name, u.Routes = "other", []Route{{}}; return u }())
			p.Own(l.Addr())
			address := listen(t, p)
			resp := say(t, address, get("/self/x"))
			if e := failureOf(t, resp); resp.StatusCode != http.StatusLoopDetected || !strings.Contains(e.Message, "weir itself") {
				t.Errorf("%s on %s: answered %s: %+v", host, on, resp.Status, e)
			}
			if resp := say(t, address, get("/x")); resp.StatusCode != 200 {
				t.Errorf("another upstream: answered %s", resp.Status)
			}
		}
		_ = s.Close()
		if len(reached) > 0 {
			t.Errorf("on %s: %d reached it", on, len(reached))
		}
	}
}

// overHTTP2 sends a request with a raw path, and returns the status, or the error of the stream or connection.
func overHTTP2(t testing.TB, address, path string, fields ...string) (status string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range append([]string{":method: GET", ":scheme: http", ":authority: " + address, ":path: " + path}, fields...) {
		at := strings.Index(f[1:], ": ") + 1
		_ = e.WriteField(hpack.HeaderField{Name: f[:at], Value: f[at+2:]})
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
