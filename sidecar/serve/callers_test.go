package serve

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// twoTokens configures two callers.
const twoTokens = "tokens: {a: {env: TOKEN_A}, b: {env: TOKEN_B}}\n"

// callAs sends a request with a token, and returns the status and body of the response.
func callAs(t *testing.T, c *http.Client, token, method, target, body string, set func(http.Header)) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if value, ok := insideEnv(token); ok {
		r.Header.Set("X-Weir-Token", value)
	}
	if set != nil {
		set(r.Header)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func TestOneTokensFailuresDoNotOpenTheBreakerForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/bad") {
				w.WriteHeader(http.StatusInternalServerError)
			}
		}))
		defer serveInside(t, n, twoTokens+"upstreams: {up: {url: \""+up+"\", retry: off}}\n")()
		c := &http.Client{Transport: n.Transport()}
		callAs(t, c, "TOKEN_B", "GET", "/up/", "", nil)
		for range 100 {
			callAs(t, c, "TOKEN_A", "GET", "/up/bad", "", nil)
		}
		if got, text := callAs(t, c, "TOKEN_B", "GET", "/up/", "", nil); got != http.StatusOK {
			t.Errorf("another caller gets %d %s", got, text)
		}
	})
}

func TestIdempotencyKeysOfCallersAreApartWhereWeirAddsTheCredential(t *testing.T) {
	const uuid = "6f9619ff-8b86-4d11-b42d-00c04fc964ff"
	for header, key := range map[string]string{
		"Idempotency-Key": "order-1", "X-Idempotency-Key": "order-1", "Paypal-Request-Id": "order-1", "Cko-Idempotency-Key": "order-1",
		"X-Idempotence-Uuid": uuid, "Repeatability-Request-Id": uuid, "I-Twilio-Idempotency-Token": uuid,
	} {
		for _, adds := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get(header)) }))
				credentials := ""
				if adds {
					credentials = ", credentials: {Authorization: UP_KEY}"
				}
				defer serveInside(t, n, twoTokens+"upstreams: {up: {url: \""+up+"\""+credentials+"}}\n")()
				c := &http.Client{Transport: n.Transport()}
				set := func(h http.Header) { h.Set(header, key) }
				_, a := callAs(t, c, "TOKEN_A", "POST", "/up/", "x", set)
				_, again := callAs(t, c, "TOKEN_A", "POST", "/up/", "x", set)
				_, b := callAs(t, c, "TOKEN_B", "POST", "/up/", "x", set)
				if key == uuid && !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(a) {
					t.Errorf("%s: %q is not a UUID", header, a)
				}
				if a != again || (a == b) != !adds || !adds && a != key || a == "" {
					t.Errorf("%s, weir adds the credential %v: the upstream sees %q, %q and of another caller %q", header, adds, a, again, b)
				}
			})
		}
	}
}

func TestAmbiguousRequestsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var came atomic.Int64
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			came.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"a","object":"chat.completion","model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
		}))
		defer serveInside(t, n, "upstreams:\n  up: {url: \""+up+"\", keys: {tenant: \"query:tenant\"}, limits: {all: {rate: 100/s, scope: tenant}}}\n"+
			"  list: {url: \""+up+"\", keys: {tenant: \"query:filter[t]\"}, limits: {all: {rate: 100/s, scope: tenant}}}\n"+
			"  llm: {url: \""+up+"\", preset: openai-compatible}\n")()
		c := &http.Client{Transport: n.Transport()}
		for target, want := range map[string]int{
			"/up/?tenant=a":           200,
			"/up/?tenant=a&other=b":   200,
			"/up/?other=a&other=b":    200,
			"/up/?tenant=a&tenant=b":  400,
			"/up/?tenant=a&Tenant=b":  400,
			"/up/?tenant=a&t%65nant=": 400,
			"/up/?tenant=a;tenant=b":  400,
			"/up/?x=%zz&tenant=a":     400,

			"/up/?tenant=a&tenant%00=b":      400, // as PHP, IIS, Rack, Express and other servers read it
			"/up/?tenant=a&tenant%00x=b":     400,
			"/up/?tenant=a&tenant[]=b":       400,
			"/up/?tenant=a&tenant%5B%5D=b":   400,
			"/up/?tenant=a&tenant[0]=b":      400,
			"/up/?tenant=a&Tenant[x][y]=b":   400,
			"/up/?tenant=a&+tenant=b":        400,
			"/up/?tenant=a&tenant%20=b":      400,
			"/up/?tenant=a&%09tenant=b":      400,
			"/up/?tenant=a&%u0074enant=b":    400,
			"/up/?tenant=a&t%2565nant=b":     400,
			"/up/?x=1;tenant=b&tenant=a":     400,
			"/up/?tenant[]=b":                400,
			"/up/?TENANT=b":                  400,
			"/up/?tenant=a&tenants=b":        200,
			"/up/?tenant=a&my[tenant]=b":     200,
			"/up/?tenant=a&x=%5B%00tenant":   200,
			"/up/?tenant=a&x=tenant[]=b":     200,
			"/llm/?key=a;key=b":              400,
			"/llm/?key=a&key[]=b":            400,
			"/llm/?key=a&key%00=b":           400,
			"/llm/?key=a&KEY=b":              400,
			"/llm/?key=a&x=1;y=2":            200,
			"/list/?filter[t]=a&filter[p]=2": 200,
			"/list/?filter[t]=a&Filter[t]=b": 400,
		} {
			if got, text := callAs(t, c, "", "GET", target, "", nil); got != want {
				t.Errorf("%s: %d %s, want %d", target, got, text, want)
			}
		}
		before := came.Load()
		for body, want := range map[string]int{
			`{"model":"m","messages":[]}`:                               200,
			`{"model":"m","messages":[],"metadata":{"Model":"x"}}`:      200,
			`{"model":"m","model":"n","messages":[]}`:                   400,
			`{"model":"m","Model":"n","messages":[]}`:                   400,
			`{"MODEL":"m","messages":[],"model":"n"}`:                   400,
			`{"MODEL":"m","Model":"n","messages":[]}`:                   400,
			`{"model":"m","mod\u0045l":"n","messages":[]}`:              400,
			`{"model":"m","model\u0000":"n","messages":[]}`:             400,
			`{"Model\u0000x":"m","model":"n","messages":[]}`:            400,
			`{"model":"m","messages":[],"max_to\u212aens":1}`:           200,
			`{"model":"m","messages":[],"\u0000model":"n"}`:             200,
			`{"model":"m","messages":[],"Max_Tokens":1,"max_tokens":9}`: 400,
		} {
			if got, text := callAs(t, c, "", "POST", "/llm/v1/chat/completions", body, func(h http.Header) { h.Set("Content-Type", "application/json") }); got != want {
				t.Errorf("%s: %d %s, want %d", body, got, text, want)
			}
		}
		if sent := came.Load() - before; sent != 4 {
			t.Errorf("%d bodies were sent on, want 4", sent)
		}
	})
}

func TestLetterCaseDoesNotEvadeAnOperation(t *testing.T) {
	for _, c := range []struct {
		paths string
		want  int
	}{{"case-insensitive", 429}, {"case-sensitive", 200}} {
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New()
			defer n.Close()
			up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer serveInside(t, n, "upstreams: {up: {url: \""+up+"\", paths: "+c.paths+", max_wait: off, operations: {admin: {path: /admin/}}, limits: {admin: {rate: 1/h, burst: 1, operations: [admin]}}}}\n")()
			client := &http.Client{Transport: n.Transport()}
			callAs(t, client, "", "GET", "/up/admin/x", "", nil)
			for _, target := range []string{"/up/ADMIN/x", "/up/Admin", "/up/%41dmin/x", "/up//ADMIN/", "/up/Admin%2F", "/up/Admin./x", "/up/admin.", "/up/ADMIN%20.%20/x", "/up/ADMIN::$DATA", "/up/ADMIN:x:$DATA/y", "/up/ADM%C4%B0N/x", "/up/ADMIN;v=1/x", "/up/%5CADMIN"} {
				if got, text := callAs(t, client, "", "GET", target, "", nil); got != c.want {
					t.Errorf("%s, %s: %d %s, want %d", c.paths, target, got, text, c.want)
				}
			}
		})
	}
}

func TestWebSocketOfAnotherSiteIsRefusedWhereWeirAddsTheCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var came atomic.Int64
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { came.Add(1) }))
		defer serveInside(t, n, "upstreams:\n  up: {url: \""+up+"\", credentials: {Authorization: UP_KEY}, routes: [{path: /up/, strip: true, websocket: true}]}\n"+
			"  tunnel: {url: \""+up+"\", credentials: {Authorization: UP_KEY}}\n")()
		c := &http.Client{Transport: n.Transport()}
		for _, at := range []string{"/up/", "/tunnel/"} {
			for _, origin := range []string{"https://evil.example", "null", "http://localhost.evil.example", "http://localhost:81", "file://"} {
				got, text := callAs(t, c, "", "GET", at, "", func(h http.Header) {
					h.Set("Connection", "Upgrade")
					h.Set("Upgrade", "websocket")
					h.Set("Sec-WebSocket-Version", "13")
					h.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
					h.Set("Origin", origin)
				})
				if got != http.StatusForbidden {
					t.Errorf("%s, origin %s: %d %s, want 403", at, origin, got, text)
				}
			}
		}
		if came.Load() > 0 {
			t.Errorf("%d upgrades were sent on", came.Load())
		}
	})
}
