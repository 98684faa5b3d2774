package proxy

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// withAccess returns a proxy with an Access.
func withAccess(t testing.TB, d Access, upstreams ...Upstream) *Proxy {
	t.Helper()
	p := newProxy(t)
	if err := p.SetAll(d, upstreams); err != nil {
		t.Fatal(err)
	}
	return p
}

// Requests that a browser sends for a page of another site are refused where weir adds credentials, whatever the
// method. Similar headers of other requests are accepted.
func TestPagesOfOtherSitesDoNotGetCredentials(t *testing.T) {
	for _, c := range []struct {
		name   string
		fields []string
		let    bool
	}{
		{"a program", nil, true},
		{"an address typed by hand", []string{"Sec-Fetch-Site: none"}, true},
		{"a page of ours", []string{"Sec-Fetch-Site: same-origin", "Origin: http://127.0.0.1"}, true},
		{"a page of ours, an old browser", []string{"Origin: http://127.0.0.1"}, true},
		{"a page of ours, behind TLS", []string{"Origin: https://127.0.0.1"}, true},
		{"a page that is listed", []string{"Sec-Fetch-Site: cross-site", "Origin: https://App.Example"}, true},
		{"a page that is listed, an old browser", []string{"Origin: https://app.example"}, true},
		{"a page of another site", []string{"Sec-Fetch-Site: cross-site", "Origin: https://evil.example"}, false},
		{"its image", []string{"Sec-Fetch-Site: cross-site"}, false},
		{"an old browser", []string{"Origin: https://evil.example"}, false},
		{"a sandboxed frame", []string{"Origin: null"}, false},
		{"a sandboxed frame of today", []string{"Sec-Fetch-Site: cross-site", "Origin: null"}, false},
		{"another port of this machine", []string{"Sec-Fetch-Site: same-site", "Origin: http://127.0.0.1:3000"}, false},
		{"another port, an old browser", []string{"Origin: http://127.0.0.1:3000"}, false},
		{"like one that is listed", []string{"Sec-Fetch-Site: cross-site", "Origin: https://app.example.evil.example"}, false},
		{"one that is listed, without TLS", []string{"Sec-Fetch-Site: cross-site", "Origin: http://app.example"}, false},
		{"typed by hand, but for a page", []string{"Sec-Fetch-Site: none", "Origin: https://evil.example"}, false},
		{"of the same site as the browser sees it, through a proxy that changes Host", []string{"Sec-Fetch-Site: same-origin", "Origin: http://evil.example"}, false},
		{"a word that nobody knows", []string{"Sec-Fetch-Site: same"}, false},
		{"two words", []string{"Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"}, false},
		{"two origins", []string{"Origin: https://app.example", "Origin: https://evil.example"}, false},
	} {
		w := newWire(t)
		plain, keyed := up(w.url, brisk()), up(w.url, brisk())
		keyed.Name, keyed.Routes, keyed.Credentials = "keyed", []Route{{Path: "/keyed/"}}, true
		var whys []Why
		address := listen(t, withAccess(t, Access{Origins: []string{"https://app.example"}, Refused: func(w Why) { whys = append(whys, w) }}, plain, keyed))
		for _, method := range []string{"GET", "POST", "OPTIONS", "PUT"} {
			request := strings.Replace(get("/keyed/x", c.fields...), "GET", method, 1)
			got := say(t, address, request)
			if (got.StatusCode == 200) != c.let || !c.let && got.StatusCode != 403 {
				t.Errorf("%s, %s: answered %s", c.name, method, got.Status)
			}
			if !c.let && method == "GET" {
				if e := failureOf(t, got); e.Code != refuse.Forbidden || !strings.Contains(e.Message, "origins") {
					t.Errorf("%s: %+v", c.name, e)
				}
			}
			if got := say(t, address, strings.Replace(request, "/keyed/", "/", 1)); got.StatusCode != 200 {
				t.Errorf("%s, %s: where weir adds nothing: answered %s", c.name, method, got.Status)
			}
		}
		if want := map[bool]int{true: 8, false: 4}[c.let]; len(w.heads()) != want {
			t.Errorf("%s: %d requests reached the upstream, want %d", c.name, len(w.heads()), want)
		}
		if !c.let && (len(whys) != 4 || whys[0] != wrongOrigin) {
			t.Errorf("%s: told of %v", c.name, whys)
		}
	}
}

const token = "a-secret-of-thirty-two-tokens/+="

func known(upstreams ...string) *auth.Auth {
	return &auth.Auth{Tokens: []auth.Token{{Name: "app", SHA256: auth.Hash(token), Upstreams: upstreams}, {Name: "job", SHA256: auth.Hash("other-" + token)}}}
}

// A token may be in any place where SDKs put API keys. It identifies the caller and is not forwarded. The caller's
// other headers are.
func TestTokensComeInAndGoNoFurther(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("a:b"))
	for _, c := range []struct {
		name, target string
		fields       []string
		status       int
		stays        string
	}{
		{"none", "/x", nil, 401, ""},
		{"a wrong one", "/x", []string{"Authorization: Bearer " + token[1:]}, 401, ""},
		{"of another kind", "/x", []string{"Authorization: " + basic}, 401, ""},
		{"bearer", "/x", []string{"Authorization: Bearer " + token, "X-Api-Key: of-the-caller"}, 200, "of-the-caller"},
		{"our own header", "/x", []string{TokenHeader + ": " + token, "Authorization: Bearer of-the-caller"}, 200, "of-the-caller"},
		{"x-api-key", "/x", []string{"X-Api-Key: " + token}, 200, ""},
		{"api-key", "/x", []string{"Api-Key: " + token}, 200, ""},
		{"x-goog-api-key", "/x", []string{"X-Goog-Api-Key: " + token}, 200, ""},
		{"the query", "/x?alt=sse&key=" + strings.ReplaceAll(token, "+", "%2B") + "&a=b", nil, 200, "GET /x?alt=sse&a=b HTTP/1.1"},
		{"aws", "/x", []string{"Authorization: AWS4-HMAC-SHA256 Credential=" + token + "/20261122/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=00"}, 200, ""},
		{"aws without its scope", "/x", []string{"Authorization: AWS4-HMAC-SHA256 Credential=" + token}, 401, ""},
		{"as the key and in our own header", "/x", []string{TokenHeader + ": " + token, "X-Api-Key: " + token}, 200, ""},
		{"as the key and as bearer, beside another's", "/x", []string{"Authorization: Bearer " + token, "X-Api-Key: " + token, "Api-Key: of-the-caller"}, 200, "of-the-caller"},
		{"in a header and in the query", "/x?key=" + strings.ReplaceAll(token, "+", "%2B") + "&a=b", []string{"X-Goog-Api-Key: " + token}, 200, "GET /x?a=b HTTP/1.1"},
		{"in a second line", "/x", []string{"X-Api-Key: of-the-caller", "X-Api-Key: " + token}, 200, ""},
		{"in a second parameter", "/x?key=own&key=" + strings.ReplaceAll(token, "+", "%2B") + "&a=b", nil, 200, "GET /x?a=b HTTP/1.1"},
		{"of another caller", "/x", []string{TokenHeader + ": " + token, "X-Api-Key: other-" + token}, 200, ""},
		{"not for this upstream", "/other/x", []string{"X-Api-Key: " + token}, 403, ""},
		{"no route, and no token", "/none/x", nil, 401, ""},
	} {
		w := newWire(t)
		u := up(w.url, brisk())
		u.Routes = []Route{{Path: "/x"}}
		other := up(w.url, brisk())
		other.Name, other.Routes = "other", []Route{{Path: "/other/"}}
		u.Keys = map[string]httpx.Source{"who": {Kind: httpx.FromCaller}}
		u.Policy.Limits = []limit.Limit{{Name: "each", Scope: "who", Rate: bucket.Rate{Amount: 100, Per: time.Second}}}
		p := withAccess(t, Access{Auth: known("up")}, u, other)
		resp := say(t, listen(t, p), get(c.target, c.fields...))
		if resp.StatusCode != c.status {
			t.Errorf("%s: answered %s, want %d", c.name, resp.Status, c.status)
			continue
		}
		heads := strings.Join(w.heads(), "")
		if c.status != 200 {
			if heads != "" || strings.Contains(text(t, resp), token) {
				t.Errorf("%s: the upstream got %q", c.name, heads)
			}
			continue
		}
		if strings.Contains(heads, token) || strings.Contains(heads, token[:20]) || !strings.Contains(heads, c.stays) {
			t.Errorf("%s: the upstream got %q, want %q in it, and no token", c.name, heads, c.stays)
		}
		if l := p.Upstreams()["up"].Look(2).Limits; len(l) != 1 || l[0].Key != "app" {
			t.Errorf("%s: the call is counted by %+v", c.name, l)
		}
	}
}

// A request with an upgrade takes another code path. Its token is not forwarded either.
func TestTokensOfUpgradesGoNoFurther(t *testing.T) {
	for name, field := range map[string]string{"bearer": "Authorization: Bearer " + token, "api key": "X-Api-Key: " + token, "our own header": TokenHeader + ": " + token} {
		w := newWire(t)
		p := withAccess(t, Access{Auth: known("up")}, up(w.url, brisk()))
		resp := say(t, listen(t, p), strings.Replace(get("/x?a=b", field, "Upgrade: chat"), "Connection: close", "Connection: Upgrade", 1))
		heads := strings.Join(w.heads(), "")
		if resp.StatusCode != http.StatusOK || !strings.Contains(heads, "Upgrade: chat") || strings.Contains(heads, token) {
			t.Errorf("%s: answered %s, and the upstream got %q", name, resp.Status, heads)
		}
	}
}

// A weir that adds credentials refuses unknown callers on other machines, even if its configuration was not checked.
func TestCredentialsAreNotForWhoeverReachesThem(t *testing.T) {
	w := newWire(t)
	for _, c := range []struct {
		name   string
		access Access
		ids    bool
		at     net.IP
		want   int
	}{
		{"here", Access{}, false, net.IPv4(127, 0, 0, 1), 200},
		{"elsewhere", Access{}, false, net.IPv4(10, 0, 0, 7), 403},
		{"elsewhere, open", Access{Open: true}, false, net.IPv4(10, 0, 0, 7), 200},
		{"elsewhere, the dialect asks", Access{}, true, net.IPv4(10, 0, 0, 7), 200},
		{"elsewhere, tokens", Access{Auth: known()}, false, net.IPv4(10, 0, 0, 7), 200},
	} {
		u := up(w.url, brisk())
		u.Credentials, u.Identifies = true, c.ids
		p := withAccess(t, c.access, u)
		r := httptest.NewRequest("GET", "/x", nil)
		r.Host = "127.0.0.1"
		r.Header.Set("X-Api-Key", token)
		rec := httptest.NewRecorder()
		p.ServeHTTP(rec, r.WithContext(withLocal(r, &net.TCPAddr{IP: c.at, Port: 80}).Context()))
		if rec.Code != c.want {
			t.Errorf("%s: %d %s, want %d", c.name, rec.Code, rec.Body, c.want)
		}
	}
}

// The program's own requests do not count against the limits of callers: they are neither refused nor do they use a
// slot.
func TestOwnRequestsAreNotCounted(t *testing.T) {
	held, release := make(chan bool), make(chan bool)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			held <- true
			<-release
		}
	}))
	defer api.Close()
	c := connlimit.New(connlimit.Bounds{Connections: 10, CallerConnections: 10, Streams: 10, Requests: 1, CallerRequests: 1}, nil)
	p := withAccess(t, Access{ConnLimit: c}, up(api.URL, weir.Policy{}))
	own := func(path string) int {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Host, r.RemoteAddr = "localhost", ""
		if err := p.Serve("up", w, r); err != nil {
			t.Error(err)
		}
		return w.Code
	}
	address := "http://" + listen(t, p)
	var wg sync.WaitGroup
	wg.Go(func() { do(t, "GET", address+"/held", "") })
	wait(t, "the first call", held)
	if got := do(t, "GET", address+"/", "").StatusCode; got != http.StatusServiceUnavailable {
		t.Errorf("a second caller: %d", got)
	}
	if got := own("/"); got != http.StatusOK {
		t.Errorf("an own request beside it: %d", got)
	}
	release <- true
	wg.Wait()
	for late := time.Now().Add(patience); c.Use().Requests > 0; runtime.Gosched() {
		if time.Now().After(late) {
			t.Fatal("the first call is not over")
		}
	}
	wg.Go(func() { own("/held") })
	wait(t, "an own call", held)
	if got := c.Use(); got.Requests != 0 || got.CallerRequests != 0 {
		t.Errorf("an own request takes the room of callers: %+v", got)
	}
	release <- true
	wg.Wait()
}

func TestNamesOfTheListenerAreOurs(t *testing.T) {
	w := newWire(t)
	address := listen(t, withAccess(t, Access{Hosts: []string{"Weir.Local"}}, up(w.url, brisk())))
	for host, want := range map[string]int{"weir.local": 200, "WEIR.LOCAL:8080": 200, "weir.local.": 200, "x.weir.local": 421, "local": 421} {
		if resp := say(t, address, "GET / HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n"); resp.StatusCode != want {
			t.Errorf("%s: answered %s, want %d", host, resp.Status, want)
		}
	}
}
