package proxy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// smuggled lists requests that two servers could parse differently. None may reach the upstream.
var smuggled = map[string]string{
	"two different lengths":      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
	"a list of lengths":          "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5, 6\r\n\r\nhello!",
	"negative length":            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
	"length with plus":           "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: +5\r\n\r\nhello",
	"hexadecimal length":         "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x5\r\n\r\nhello",
	"unknown coding":             "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
	"chunked twice":              "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
	"chunked, then identity":     "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
	"chunked with a tab":         "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
	"folded first field":         "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n",
	"space before the colon":     "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length : 5\r\n\r\nhello",
	"space in a name":            "GET / HTTP/1.1\r\nHost: localhost\r\nX A: 1\r\n\r\n",
	"empty name":                 "GET / HTTP/1.1\r\nHost: localhost\r\n: 1\r\n\r\n",
	"no colon":                   "GET / HTTP/1.1\r\nHost: localhost\r\nX-A\r\n\r\n",
	"zero byte in a value":       "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: a\x00b\r\n\r\n",
	"bare carriage return":       "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: a\rX-B: b\r\n\r\n",
	"two hosts":                  "GET / HTTP/1.1\r\nHost: localhost\r\nHost: else\r\n\r\n",
	"no host":                    "GET / HTTP/1.1\r\n\r\n",
	"bad host":                   "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
	"absolute form":              "GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"absolute form, other host":  "GET http://else.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"absolute form of the other": "GET https://localhost/ HTTP/1.1\r\nHost: else.example\r\n\r\n",
	"connect":                    "CONNECT else.example:443 HTTP/1.1\r\nHost: else.example:443\r\n\r\n",
	"connect to a path":          "CONNECT /a HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"options *":                  "OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"get *":                      "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"no slash":                   "GET a HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"query alone":                "GET ?a HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"bad escape":                 "GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"space in the path":          "GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"unknown version":            "GET / HTTP/3.0\r\nHost: localhost\r\n\r\n",
	"no version":                 "GET /nothing-else\r\n\r\n",
	"bad method":                 "G(T / HTTP/1.1\r\nHost: localhost\r\n\r\n",
	"foreign host":               "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
	"foreign host with our port": "GET / HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n",
	"host like ours":             "GET / HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n",
	"host like an address":       "GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n",
}

func TestBadRequestsEndHere(t *testing.T) {
	reached := make(chan string, 100)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.RequestURI }))
	defer s.Close()
	address := listen(t, newProxy(t, up(s.URL, brisk())))
	for name, request := range smuggled {
		resp := say(t, address, request)
		if c := resp.StatusCode; (c < 400 || c >= 500) && c != 501 && c != 505 {
			t.Errorf("%s: answered %s, want a 4xx", name, resp.Status)
		}
		if text(t, resp) == "" {
			t.Errorf("%s: the answer says nothing", name)
		}
	}
	if len(reached) > 0 {
		t.Errorf("%d reached the upstream: %s", len(reached), <-reached)
	}
}

// If a request has both a length and chunks, the chunks win (RFC 9112, 6.3). The length is not forwarded, so the
// upstream parses the request as weir did.
func TestLengthBesideChunksIsNotPassedOn(t *testing.T) {
	bodies := make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies <- fmt.Sprintf("%s %v %s", b, r.ContentLength, r.URL)
	}))
	defer s.Close()
	address := listen(t, newProxy(t, up(s.URL, brisk())))
	resp := say(t, address, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if resp.StatusCode >= 400 {
		return // a refusal is correct as well
	}
	if got := wait(t, "the request", bodies); got != "hello -1 /" {
		t.Errorf("upstream got %q", got)
	}
}

// A folded field is unfolded (RFC 9112, 5.2), so that no server reads its second line as another field.
func TestFoldedFieldIsOneField(t *testing.T) {
	w := newWire(t)
	say(t, listen(t, newProxy(t, up(w.url, brisk()))), get("/", "X-A: 1", " X-B: 2"))
	if head := w.heads()[0]; len(lines(head, "X-A")) != 1 || len(lines(head, "X-B"))+len(lines(head, " X-B")) > 0 {
		t.Errorf("sent %q", head)
	}
}

func TestNamesOfThisMachineAreOurs(t *testing.T) {
	w := newWire(t)
	u := up(w.url, brisk())
	u.Routes = append(u.Routes, Route{Host: "S3.Example"})
	address := listen(t, newProxy(t, u))
	for _, host := range []string{"localhost", "LOCALHOST:1", "a.localhost", "localhost.", "127.0.0.1:99", "127.9.9.9", "[::1]", "[::1]:80", "10.0.0.1", "s3.example", "S3.EXAMPLE:8080", "s3.example."} {
		if resp := say(t, address, "GET / HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); resp.StatusCode != http.StatusOK {
			t.Errorf("host %s: answered %s", host, resp.Status)
		}
	}
}

// On an address that other machines can reach, weir accepts any host name.
func TestAnyHostIsOursBeyondLoopback(t *testing.T) {
	p := newProxy(t, up("http://127.0.0.1:1", brisk()))
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "weir.internal"
	for ip, want := range map[string]bool{"127.0.0.1": false, "::1": false, "10.0.0.7": true, "::": true} {
		ctx := withLocal(r, &net.TCPAddr{IP: net.ParseIP(ip)})
		if got := p.table.Load().ours(ctx); got != want {
			t.Errorf("on %s: ours is %v", ip, got)
		}
	}
}

func TestRoutesByPrecedence(t *testing.T) {
	route := func(name string, routes ...Route) Upstream {
		return Upstream{Name: name, URL: &url.URL{Scheme: "http", Host: name}, Routes: routes}
	}
	p := newProxy(t,
		route("all", Route{}), route("a", Route{Path: "/a/", Strip: true}), route("ab", Route{Path: "/a/b/"}),
		route("host", Route{Host: "s3.local"}), route("hosta", Route{Host: "s3.local", Path: "/a/"}), route("byname"))
	for _, c := range []struct{ host, target, name, path string }{
		{"", "/", "all", "/"}, {"", "/x", "all", "/x"}, {"", "/a", "a", "/"}, {"", "/a/x", "a", "/x"}, {"", "/ab", "all", "/ab"},
		{"", "/a/b", "ab", "/a/b"}, {"", "/a/b/c", "ab", "/a/b/c"}, {"", "/a/bc", "a", "/bc"}, {"", "/byname/x?y", "byname", "/x"},
		{"s3.local", "/", "host", "/"}, {"S3.local:80", "/b", "host", "/b"}, {"s3.local", "/a/b/c", "hosta", "/a/b/c"}, {"other", "/a/b", "ab", "/a/b"},
	} {
		r := &http.Request{Host: c.host, RequestURI: c.target}
		to, path, _, _, ok := p.table.Load().find(r)
		if !ok || to.Name != c.name || path != c.path {
			t.Errorf("%+v: went to %v with %q", c, to, path)
		}
	}
}

func TestNoRouteSaysSo(t *testing.T) {
	u := up("http://127.0.0.1:1", brisk())
	u.Routes = nil
	resp := say(t, listen(t, newProxy(t, u)), get("/nowhere"))
	e := failureOf(t, resp)
	if resp.StatusCode != http.StatusNotFound || e.Code != refuse.ValidationError || e.Details["path"] != "/nowhere" {
		t.Errorf("answered %s: %+v", resp.Status, e)
	}
}

func TestHugeHeaderIsRefusedAndNotKept(t *testing.T) {
	w := newWire(t)
	address := listen(t, newProxy(t, up(w.url, brisk())), func(s *http.Server) { s.MaxHeaderBytes = 64 << 10 })
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	before := heap()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-A: ")
	chunk := bytes.Repeat([]byte("a"), 1<<20)
	for range 100 { // until weir closes the connection
		if _, err := c.Write(chunk); err != nil {
			break
		}
	}
	// The response may be lost with the connection, because the test was still writing.
	if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("answered %s", resp.Status)
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	if resp := say(t, address, get("/", "X-A: "+strings.Repeat("a", 80<<10))); resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 80 KiB: answered %s", resp.Status)
	}
	if len(w.heads()) > 0 {
		t.Error("it reached the upstream")
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A body above the limit is refused immediately if its length is known, and otherwise when it exceeds the limit. The
// upstream's breaker does not count it.
func TestBodyAboveTheLimit(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer s.Close()
	u := up(s.URL, brisk())
	u.MaxBody = 1000
	p := newProxy(t, u)
	address := listen(t, p)
	long := strings.Repeat("a", 1001)
	for name, c := range map[string]struct {
		request string
		status  int
	}{
		"length":         {"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n" + long, 413},
		"length alone":   {"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n", 413},
		"chunked":        {"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + long + "\r\n0\r\n\r\n", 413},
		"just":           {"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\nConnection: close\r\n\r\n" + long[1:], 200},
		"chunked, just":  {"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3e8\r\n" + long[1:] + "\r\n0\r\n\r\n", 200},
		"no body at all": {get("/"), 200},
	} {
		resp := say(t, address, c.request)
		if resp.StatusCode != c.status {
			t.Errorf("%s: answered %s, want %d", name, resp.Status, c.status)
		}
		if c.status == 200 {
			continue
		}
		if e := failureOf(t, resp); e.Code != refuse.ValidationError || !strings.Contains(e.Message, "1000") {
			t.Errorf("%s: %+v", name, e)
		}
		if resp.Header.Get(AttemptsHeader) != "" {
			t.Errorf("%s: made %s attempts", name, resp.Header.Get(AttemptsHeader))
		}
	}
	if b := p.Upstreams()["up"].Look(0).Breakers[0]; b.Failed > 0 {
		t.Errorf("the breaker counts %d failures", b.Failed)
	}
}

// A caller that disconnects while it sends its body does not count against the upstream.
func TestBodyCutByTheCallerIsNotTheUpstreamsFault(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer s.Close()
	ended := make(chan weir.Ended, 100)
	p, err := New([]Upstream{up(s.URL, brisk())}, weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { ended <- e }}})
	if err != nil {
		t.Fatal(err)
	}
	address := listen(t, p)
	for _, request := range []string{
		"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhello",
		"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
	} {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, request)
		_ = c.(*net.TCPConn).CloseWrite()
		e := wait(t, "the end of the attempt", ended)
		if o := e.Outcome; o.Retryable() || o.Class.String() == "ok" {
			t.Errorf("%.60q: outcome %+v", request, o)
		}
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
	if b := p.Upstreams()["up"].Look(0).Breakers[0]; b.Failed > 0 {
		t.Errorf("the breaker counts %d failures", b.Failed)
	}
	if len(ended) > 0 {
		t.Errorf("%d attempts too many", len(ended))
	}
}

// A request that costs more than a limit can hold is the caller's fault.
func TestCostBeyondTheLimitIsRejected(t *testing.T) {
	w := newWire(t)
	policy := brisk()
	policy.Limits = []limit.Limit{{Name: "volume", Unit: "bytes", Rate: bucket.Rate{Amount: 100, Per: time.Second}}}
	resp := say(t, listen(t, newProxy(t, up(w.url, policy))), "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 101\r\n\r\n"+strings.Repeat("a", 101))
	e := failureOf(t, resp)
	if resp.StatusCode != http.StatusBadRequest || e.Code != refuse.ValidationError || !strings.Contains(e.Message, "volume") {
		t.Errorf("answered %s: %+v", resp.Status, e)
	}
	if len(w.heads()) > 0 {
		t.Error("it was sent")
	}
}

type wrong struct {
	Code    string
	Message string
	Details map[string]any
}

// failureOf decodes weir's own error, and fails on unknown fields.
func failureOf(t testing.TB, resp *http.Response) wrong {
	t.Helper()
	var body struct{ Error wrong }
	d := json.NewDecoder(resp.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&body); err != nil {
		t.Errorf("%s: the body is not weir's error: %v", resp.Status, err)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: content type %q", resp.Status, got)
	}
	if len(resp.Header[httpx.CorrelationHeader]) != 1 {
		t.Errorf("%s: correlation ids %q, want one", resp.Status, resp.Header[httpx.CorrelationHeader])
	}
	return body.Error
}
