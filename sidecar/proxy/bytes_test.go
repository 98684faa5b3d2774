package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// targets lists paths and queries that a careless proxy would normalize.
var targets = []string{
	"/", "//", "//a", "///", "/a//b", "/a/", "/a%2Fb", "/a%2fb", "/a+b", "/a%20b", "/%7e~", "/%7E", "/a;b", "/a;b=c;d",
	"/a,b:c@d", "/a|b", `/a"b`, `/a\b`, "/a^b", "/a`b", "/{a}", "/<a>", "/[a]", "/a'b(c)*d!", "/%C3%BC", "/%c3%bc", "/ü", "/%FF",
	"/a/../b", "/a/./b", "/.", "/a#b", "/model/anthropic.claude-v1%3A0/converse",
	"/*", "/a=b&c", "/a:80", "/http://else/", "/%00", "/%25", "/%2525",
	"/?", "/a?", "/?a", "/?a&&b=%zz", "/?a;b", "/?a=1;b=2", "/?&", "/?=", "/?a=b=c", "/?a?b", "/?%", "/?a=ü", "/?b=1&a=2&b=0",
	"/?a+b=c%20d", `/?a="b"|c`, "/?list-type=2&prefix=a%2Fb&delimiter=/", "/a|b?c;d=%zz", "/ü?", "/?X-Amz-Signature=0&x=%",
}

func TestTargetReachesUpstreamByteForByte(t *testing.T) {
	w := newWire(t)
	address := listen(t, newProxy(t, up(w.url, brisk())))
	for _, target := range targets {
		before := len(w.heads())
		if resp := say(t, address, get(target)); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: answered %s", target, resp.Status)
			continue
		}
		if got, want := firstLine(w.heads()[before]), "GET "+target+" HTTP/1.1"; got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
}

// A path that begins with two slashes and that Go would escape differently needs the host before it. RFC 9112, 3.2.2
// requires servers to accept that.
func TestOddPathWithTwoSlashesKeepsItsBytes(t *testing.T) {
	w := newWire(t)
	address := listen(t, newProxy(t, up(w.url, brisk())))
	for _, target := range []string{"//a|b", "//ü?a;b", "//else.example/|"} {
		before := len(w.heads())
		say(t, address, get(target))
		if got, want := firstLine(w.heads()[before]), "GET "+w.url+target+" HTTP/1.1"; got != want {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
}

// TestAnyTargetKeepsItsBytes checks the outgoing URL of random targets.
func TestAnyTargetKeepsItsBytes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	base := &url.URL{Scheme: "http", Host: "up.example"}
	const alphabet = `abc/%2F%zz?&=;+|"\^{}<>[]~!$'()*,:@ü.-_`
	letters := []rune(alphabet)
	for range 20_000 {
		var b strings.Builder
		for range r.IntN(12) {
			b.WriteRune(letters[r.IntN(len(letters))])
		}
		target := "/" + b.String()
		in, err := url.ParseRequestURI(target)
		if err != nil {
			continue // the server refuses it before the proxy sees it
		}
		path, _, _ := strings.Cut(target, "?")
		got := address(base, path, in).RequestURI()
		if !strings.HasPrefix(target, "//") {
			got = strings.TrimPrefix(got, "http://up.example")
		}
		if got != target && got != "http://up.example"+target {
			t.Fatalf("seed %d: sent %q, want %q", seed, got, target)
		}
	}
}

func TestPathOfUpstreamAndStrippedPrefix(t *testing.T) {
	w := newWire(t)
	for _, c := range []struct {
		base, prefix  string
		strip         bool
		target, wants string // wants "" means no route
	}{
		{"", "/s3/", true, "/s3", "/"},
		{"", "/s3/", true, "/s3/", "/"},
		{"", "/s3/", true, "/s3//", "//"},
		{"", "/s3/", true, "/s3//a", "//a"},
		{"", "/s3/", true, "/s3/a%2Fb", "/a%2Fb"},
		{"", "/s3/", true, "/s3/a|b?c", "/a|b?c"},
		{"", "/s3/", true, "/s3/s3/a", "/s3/a"},
		{"", "/s3/", true, "/s3?", "/?"},
		{"", "/s3/", true, "/s3/a/../b", "/a/../b"},
		{"", "/s3/", true, "/s3x", ""},
		{"", "/s3/", true, "/s3x/a", ""},
		{"", "/s3/", true, "/S3/a", ""},
		{"", "/s3/", true, "/%733/a%2f", "/a%2f"},
		{"", "/s3/", true, "/%733", "/"},
		{"", "/s3/", true, "/s3%2Fa", ""},
		{"", "/s3/", true, "//s3/a", ""},
		{"", "/s3/", true, "/", ""},
		{"", "/s3", true, "/s3/a", "/a"},
		{"", "/s3", true, "/s3", "/"},
		{"", "/s3", true, "/s3x", ""},
		{"", "/s3/", false, "/s3/a", "/s3/a"},
		{"", "/s3/", false, "/s3", "/s3"},
		{"/v1", "/s3/", true, "/s3/a", "/v1/a"},
		{"/v1/", "/s3/", true, "/s3/a", "/v1/a"},
		{"/v1", "/s3/", true, "/s3", "/v1/"},
		{"/v1", "", false, "//a", "/v1//a"},
		{"/a%2Fb", "", false, "/c%2fd", "/a%2Fb/c%2fd"},
		{"/v1", "", false, "/a|b?c;d", "/v1/a|b?c;d"},
	} {
		u := up(w.url+c.base, brisk())
		u.Routes = []Route{{Path: c.prefix, Strip: c.strip}}
		address := listen(t, newProxy(t, u))
		before := len(w.heads())
		resp := say(t, address, get(c.target))
		got := ""
		if heads := w.heads(); len(heads) > before {
			got = strings.TrimSuffix(strings.TrimPrefix(firstLine(heads[before]), "GET "), " HTTP/1.1")
		} else if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%+v: answered %s, want 404", c, resp.Status)
		}
		if got != c.wants {
			t.Errorf("%+v: sent %q", c, got)
		}
	}
}

func TestFieldsReachUpstreamUntouched(t *testing.T) {
	w := newWire(t)
	address := listen(t, newProxy(t, up(w.url, brisk())))
	fields := []string{
		"X-B: 2", "X-B: 1", "X-B: ", "X-A: a,b , c", "X-Odd!#$%&'*+.^_`|~: 1", "Authorization: AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=0",
		"Accept-Encoding: identity", "Amz-Sdk-Invocation-Id: 7", "X-Utf: ü\xff", "Cookie: a=b; c", "Range: bytes=0-", "Traceparent: 00-0-0-00",
		"Retry-After: 1", "Host-Like: other", "Via: 1.1 me",
	}
	say(t, address, get("/", fields...))
	head := w.heads()[0]
	for _, name := range []string{"X-B", "X-A", "X-Utf", "X-Odd!#$%&'*+.^_`|~", "Authorization", "Accept-Encoding", "Cookie", "Range", "Via"} {
		var want []string
		for _, f := range fields {
			if n, _, _ := strings.Cut(f, ":"); n == name {
				want = append(want, f)
			}
		}
		if got := lines(head, name); !slices.Equal(got, want) {
			t.Errorf("%s: sent %q, want %q", name, got, want)
		}
	}
	// In addition, the upstream sees its own Host and the correlation ID.
	for _, line := range lines(head, "") {
		name, _, _ := strings.Cut(line, ":")
		own := name == "Host" || name == httpx.CorrelationHeader
		if !own && !slices.ContainsFunc(fields, func(f string) bool { return strings.EqualFold(f, line) }) {
			t.Errorf("weir added %q", line)
		}
	}
	if got, want := lines(head, "Host"), []string{"Host: " + strings.TrimPrefix(w.url, "http://")}; !slices.Equal(got, want) {
		t.Errorf("sent %q, want the upstream's %q", got, want)
	}
}

func TestNothingIsAddedToABareRequest(t *testing.T) {
	w := newWire(t)
	address := listen(t, newProxy(t, up(w.url, brisk())))
	say(t, address, "GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n")
	if got := lines(w.heads()[0], ""); len(got) != 2 { // Host and the correlation ID
		t.Errorf("sent %q", got)
	}
}

// Fields of one connection (RFC 9110, 7.6.1) and the fields that Connection names are not forwarded.
func TestHopByHopFieldsEndHere(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 200 OK\r\nConnection: X-Theirs\r\nX-Theirs: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: Basic\r\nX-Kept: 1\r\nContent-Length: 0\r\n\r\n")
	address := listen(t, newProxy(t, up(w.url, brisk())))
	resp := say(t, address, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: X-Mine, Authorization\r\nConnection: X-Also\r\nX-Mine: 1\r\nX-Also: 1\r\n"+
		"Authorization: secret\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\nTE: trailers, gzip\r\nX-Kept: 1\r\n"+
		"X-Forwarded-For: 10.0.0.1\r\nForwarded: for=10.0.0.1\r\n\r\n")
	head := w.heads()[0]
	for _, name := range []string{"X-Mine", "X-Also", "Authorization", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Connection", "X-Forwarded-For", "Forwarded"} {
		if got := lines(head, name); len(got) > 0 {
			t.Errorf("passed on %q", got)
		}
	}
	if got := lines(head, "TE"); !slices.Equal(got, []string{"Te: trailers"}) {
		t.Errorf("sent %q, want trailers only", got)
	}
	if len(lines(head, "X-Kept")) != 1 || resp.Header.Get("X-Kept") != "1" {
		t.Error("lost a field that is not hop by hop")
	}
	for _, name := range []string{"X-Theirs", "Keep-Alive", "Proxy-Authenticate"} {
		if resp.Header.Get(name) != "" {
			t.Errorf("gave back %s: %q", name, resp.Header.Get(name))
		}
	}
}

// With Connection, a caller can remove its own fields but not weir's.
func TestConnectionCannotNameWhatWeirSends(t *testing.T) {
	w := newWire(t)
	address := listen(t, newProxy(t, up(w.url, brisk())))
	say(t, address, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Host, X-Correlation-Id, Content-Length\r\nX-Correlation-Id: mine\r\nContent-Length: 0\r\n\r\n")
	head := w.heads()[0]
	if len(lines(head, "Host")) != 1 || !slices.Equal(lines(head, httpx.CorrelationHeader), []string{httpx.CorrelationHeader + ": mine"}) {
		t.Errorf("sent %q", head)
	}
}

func TestAnswerComesBackUntouched(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 418 Short And Stout\r\nX-B: 2\r\nX-B: 1\r\nServer: theirs\r\nX-Hint: true\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nEtag: W/\"x\"\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x00\xff")
	address := listen(t, newProxy(t, up(w.url, brisk())))
	resp := say(t, address, get("/"))
	if resp.StatusCode != 418 || text(t, resp) != "\x1f\x8b\x00\xff" {
		t.Errorf("answered %s", resp.Status)
	}
	for name, want := range map[string][]string{
		"X-B": {"2", "1"}, "Server": {"theirs"}, "X-Hint": {"true"}, "Date": {"Mon, 01 Jan 2024 00:00:00 GMT"},
		"Etag": {`W/"x"`}, "Content-Encoding": {"gzip"}, "Content-Length": {"4"}, AttemptsHeader: nil, RefusedHeader: nil,
	} {
		if got := resp.Header[name]; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := resp.Header[httpx.CorrelationHeader]; len(got) != 1 {
		t.Errorf("%s: %q, want one", httpx.CorrelationHeader, got)
	}
}

func TestCorrelationID(t *testing.T) {
	w := newWireOf(t, "HTTP/1.1 200 OK\r\nX-Correlation-Id: theirs\r\nContent-Length: 0\r\n\r\n")
	address := listen(t, newProxy(t, up(w.url, brisk())))
	for _, c := range []struct {
		sent string
		kept bool
	}{
		{"a-1", true}, {"550e8400-e29b-41d4-a716-446655440000", true}, {strings.Repeat("x", 128), true}, {"a/b:c=d{e}", true},
		{"", false}, {strings.Repeat("x", 129), false}, {"a b", false}, {`a"b`, false}, {`a\b`, false}, {"ü", false}, {"a\tb", false}, {"\x1b[1m", false},
	} {
		before := len(w.heads())
		resp, err := tell(address, get("/", "X-Correlation-Id: "+c.sent))
		if err != nil {
			t.Fatal(err)
		}
		got := resp.Header[httpx.CorrelationHeader]
		if resp.StatusCode == http.StatusBadRequest && len(w.heads()) == before {
			continue // the server refuses the field before the proxy sees it
		}
		if len(got) != 1 {
			t.Errorf("%q: got back %q, want one id", c.sent, got)
			continue
		}
		if sent := lines(w.heads()[before], httpx.CorrelationHeader); !slices.Equal(sent, []string{httpx.CorrelationHeader + ": " + got[0]}) {
			t.Errorf("%q: sent %q on, and %q back", c.sent, sent, got)
		}
		if (got[0] == c.sent) != c.kept || !harmless(got[0]) {
			t.Errorf("%q: became %q, kept should be %v", c.sent, got[0], c.kept)
		}
	}
}

func TestMadeIDsDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for range 10_000 {
		id := correlationOf(&http.Request{})
		if seen[id] || len(id) != 15 {
			t.Fatalf("id %q: seen before, or not of 15 signs", id)
		}
		seen[id] = true
	}
}

func TestEventsCarryTheCorrelationID(t *testing.T) {
	w := newWire(t)
	ids := make(chan string, 1)
	p, err := New([]Upstream{up(w.url, brisk())}, weir.Options{Events: weir.Events{Done: func(d weir.Done) { ids <- d.ID }}})
	if err != nil {
		t.Fatal(err)
	}
	say(t, listen(t, p), get("/", "X-Correlation-Id: it"))
	if got := wait(t, "the event", ids); got != "it" {
		t.Errorf("the event has id %q", got)
	}
}

func ExampleProxy() {
	target, _ := url.Parse("https://api.example.com")
	p, err := New([]Upstream{{Name: "api", URL: target}}, weir.Options{})
	fmt.Println(err, p.Upstreams()["api"].Name())
	// Then: http.ListenAndServe("127.0.0.1:8080", p), and callers ask for /api/...
	// Output: <nil> api
}
