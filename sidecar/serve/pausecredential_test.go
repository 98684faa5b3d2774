package serve

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// Each way in which a request carries a credential: two calls with the same one, and one with another.
var credentialForms = map[string]struct{ a, again, b func(r *http.Request) }{
	"bearer":         headers("Authorization", "Bearer one", "Bearer one", "Bearer two"),
	"basic":          headers("Authorization", "Basic b25lOng=", "Basic b25lOng=", "Basic dHdvOng="),
	"own header":     headers("X-Auth-Token", "one", "one", "two"),
	"gitlab":         headers("Private-Token", "one", "one", "two"),
	"api key":        headers("X-Api-Key", "one", "one", "two"),
	"azure":          headers("Ocp-Apim-Subscription-Key", "one", "one", "two"),
	"cookie":         headers("Cookie", "theme=x; session=one", "theme=y; session=one", "theme=x; session=two"),
	"query":          query("api_key=one&q=1", "q=2&api_key=one", "api_key=two&q=1"),
	"AWS":            headers("Authorization", awsSignature("AKIAONE", "a"), awsSignature("AKIAONE", "b"), awsSignature("AKIATWO", "a")),
	"AWS, v2":        headers("Authorization", "AWS AKIAONE:aaa=", "AWS AKIAONE:bbb=", "AWS AKIATWO:aaa="),
	"presigned":      query("X-Amz-Credential=AKIAONE/20261120/eu/s3/aws4_request&X-Amz-Signature=a", "X-Amz-Credential=AKIAONE%2F20261121%2Feu%2Fs3%2Faws4_request&X-Amz-Signature=b", "X-Amz-Credential=AKIATWO/20261120/eu/s3/aws4_request&X-Amz-Signature=a"),
	"shared key":     headers("Authorization", "SharedKey one:aaa=", "SharedKey one:bbb=", "SharedKey two:aaa="),
	"OAuth 1":        headers("Authorization", `OAuth oauth_nonce="1", oauth_token="one", oauth_signature="x"`, `OAuth oauth_nonce="2", oauth_token="one", oauth_signature="y"`, `OAuth oauth_nonce="1", oauth_token="two", oauth_signature="x"`),
	"digest":         headers("Authorization", `Digest username="one", nonce="a", response="b"`, `Digest username="one", nonce="c", response="d"`, `Digest username="two", nonce="a", response="b"`),
	"path":           paths("bot1:x/send", "bot1:x/get", "bot2:y/send"),
	"webhook":        paths("services/T1/B1/x", "services/T1/B1/x", "services/T1/B1/y"),
	"app ID":         query("appid=one&q=1", "q=2&appid=one", "appid=two&q=1"),
	"SAS":            query("sv=1&se=2&sig=one", "sv=1&se=2&sig=one&x=1", "sv=1&se=2&sig=two"),
	"keyid":          headers("Signature-Input", `a=("@path");created=1;keyid="one"`, `a=("@path");created=2;keyid="one"`, `a=("@path");created=1;keyid="two"`),
	"sentry":         headers("X-Sentry-Auth", "Sentry sentry_timestamp=1, sentry_key=one", "Sentry sentry_timestamp=2, sentry_key=one", "Sentry sentry_timestamp=1, sentry_key=two"),
	"JWT":            headers("Authorization", "Bearer "+jwtOf(`{"iss":"i","sub":"one","exp":1}`), "Bearer "+jwtOf(`{"sub":"one","iss":"i","exp":2,"jti":"x"}`), "Bearer "+jwtOf(`{"iss":"i","sub":"two","exp":1}`)),
	"JWT of issuer":  headers("Authorization", "Bearer "+jwtOf(`{"iss":1,"exp":1}`), "bearer "+jwtOf(`{"iss":1,"exp":2}`), "Bearer "+jwtOf(`{"iss":2,"exp":1}`)),
	"JWT of client":  headers("X-Auth-Token", jwtOf(`{"client_id":"one","iat":1}`), jwtOf(`{"client_id":"one","iat":2}`), jwtOf(`{"client_id":"two","iat":1}`)),
	"JWT, DPoP":      headers("Authorization", "DPoP "+jwtOf(`{"iss":"i","sub":"one","exp":1}`), "Bearer "+jwtOf(`{"iss":"i","sub":"one","exp":2}`), "DPoP "+jwtOf(`{"iss":"j","sub":"one","exp":1}`)),
	"JWT in query":   query("access_token="+jwtOf(`{"sub":"one","exp":1}`), "access_token="+jwtOf(`{"sub":"one","exp":2}`), "access_token="+jwtOf(`{"Sub":"one","exp":1}`)),
	"JWT in cookie":  headers("Cookie", "session="+jwtOf(`{"sub":"one","exp":1}`), "session="+jwtOf(`{"sub":"one","exp":2}`), "session="+jwtOf(`{"sub":["one"],"exp":1}`)),
	"JWT, no claims": headers("Authorization", "Bearer "+jwtOf(`{"exp":1}`), "Bearer "+jwtOf(`{"exp":1}`), "Bearer "+jwtOf(`{"exp":2}`)),
	"not a JWT":      headers("Authorization", "Bearer eyJhbGciOiJub25lIn0.%%%.x", "Bearer eyJhbGciOiJub25lIn0.%%%.x", "Bearer eyJhbGciOiJub25lIn0.%%%.y"),
	"rotated aid":    headers("Authorization", "Bearer one", "bearer  one", "Bearer two"),
	"google, HMAC":   headers("Authorization", "GOOG4-HMAC-SHA256 Credential=ONE/20261120/auto/storage/goog4_request, SignedHeaders=host, Signature=a", "GOOG4-HMAC-SHA256 Credential=ONE/20261121/auto/storage/goog4_request, SignedHeaders=host, Signature=b", "GOOG4-HMAC-SHA256 Credential=TWO/20261120/auto/storage/goog4_request, SignedHeaders=host, Signature=a"),
}

// jwtOf returns a JWT with a signature that depends on its claims.
func jwtOf(claims string) string {
	sum := sha256.Sum256([]byte(claims))
	return "eyJhbGciOiJSUzI1NiJ9." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + base64.RawURLEncoding.EncodeToString(sum[:])
}

func awsSignature(id, signature string) string {
	return "AWS4-HMAC-SHA256 Credential=" + id + "/20261120/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=" + signature
}

func headers(name, a, again, b string) struct{ a, again, b func(r *http.Request) } {
	set := func(v string) func(r *http.Request) { return func(r *http.Request) { r.Header.Set(name, v) } }
	return struct{ a, again, b func(r *http.Request) }{set(a), set(again), set(b)}
}

func query(a, again, b string) struct{ a, again, b func(r *http.Request) } {
	set := func(v string) func(r *http.Request) { return func(r *http.Request) { r.URL.RawQuery = v } }
	return struct{ a, again, b func(r *http.Request) }{set(a), set(again), set(b)}
}

func paths(a, again, b string) struct{ a, again, b func(r *http.Request) } {
	return struct{ a, again, b func(r *http.Request) }{path(a), path(again), path(b)}
}

func path(of string) func(r *http.Request) {
	return func(r *http.Request) { r.URL.Path += of }
}

// throttling serves an API that throttles calls with a throttle header, and counts the others.
func throttling(n *memnet.Network, served *atomic.Int64) string {
	return n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, after, _ := strings.Cut(r.Header.Get("X-Throttle"), " ")
		if status == "" {
			served.Add(1)
			return
		}
		w.Header().Set("Retry-After", after)
		if status == "403" {
			w.Header().Set("X-RateLimit-Remaining", "0")
		}
		w.WriteHeader(map[string]int{"429": 429, "503": 503, "403": 403}[status])
	}))
}

// ask makes a call. The upstream throttles it if throttle is not "".
func ask(t *testing.T, c *http.Client, throttle string, set func(*http.Request)) (status int, took time.Duration) {
	t.Helper()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/up/", nil)
	r.Header.Set("X-Weir-Timeout", "1s")
	if set(r); throttle != "" {
		r.Header.Set("X-Throttle", throttle)
	}
	begin := time.Now()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode, time.Since(begin)
}

func TestThrottlePausesTheCredentialThatReceivedIt(t *testing.T) {
	for name, form := range credentialForms {
		for _, status := range []string{"429", "503"} {
			t.Run(name+" "+status, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := memnet.New()
					defer n.Close()
					var served atomic.Int64
					stop := serveInside(t, n, "upstreams: {up: {url: \""+throttling(n, &served)+"\"}}\n")
					defer stop()
					c := &http.Client{Transport: n.Transport()}
					ask(t, c, status+" 600", form.a)
					if got, _ := ask(t, c, "", form.again); got == http.StatusOK {
						t.Error("the credential that was throttled is served")
					}
					if got, took := ask(t, c, "", form.b); got != http.StatusOK || took > 100*time.Millisecond {
						t.Errorf("another credential gets %d after %v", got, took)
					}
				})
			})
		}
	}
}

// The keys of a gateway before a provider are in headers that no provider uses.
func TestThrottleOfAModelCallPausesTheCredentialThatReceivedIt(t *testing.T) {
	for _, name := range []string{"azure", "own header", "query", "bearer"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				var served atomic.Int64
				defer serveInside(t, n, "upstreams: {up: {url: \""+throttling(n, &served)+"\", llm: {}}}\n")()
				c := &http.Client{Transport: n.Transport()}
				form := credentialForms[name]
				ask(t, c, "429 600", form.a)
				if got, _ := ask(t, c, "", form.again); got == http.StatusOK {
					t.Error("the credential that was throttled is served")
				}
				if got, took := ask(t, c, "", form.b); got != http.StatusOK || took > 100*time.Millisecond {
					t.Errorf("another credential gets %d after %v", got, took)
				}
			})
		})
	}
}

func TestThrottlePausesAllWhereWeirAddsTheCredentialOrNoneWasSent(t *testing.T) {
	for name, c := range map[string]struct {
		yaml string
		b    func(*http.Request)
	}{
		"weir adds it": {", credentials: {Authorization: UP_KEY}", headers("Authorization", "", "", "Bearer two").b},
		"none is sent": {"", func(*http.Request) {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				var served atomic.Int64
				defer serveInside(t, n, "upstreams: {up: {url: \""+throttling(n, &served)+"\""+c.yaml+"}}\n")()
				client := &http.Client{Transport: n.Transport()}
				ask(t, client, "429 600", func(*http.Request) {})
				if got, _ := ask(t, client, "", c.b); got == http.StatusOK || served.Load() > 0 {
					t.Error("served during the pause")
				}
			})
		})
	}
}

func TestPauseScopePausesTheCredentialsOfOneAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var served atomic.Int64
		defer serveInside(t, n, "upstreams: {up: {url: \""+throttling(n, &served)+"\", keys: {account: \"header:X-Account\"}, pause_scope: account}}\n")()
		client := &http.Client{Transport: n.Transport()}
		of := func(account, credential string) func(*http.Request) {
			return func(r *http.Request) {
				r.Header.Set("X-Account", account)
				r.Header.Set("Authorization", "Bearer "+credential)
			}
		}
		ask(t, client, "429 600", of("acme", "one"))
		if got, _ := ask(t, client, "", of("acme", "two")); got == http.StatusOK {
			t.Error("another credential of the account is served")
		}
		if got, _ := ask(t, client, "", of("other", "three")); got != http.StatusOK {
			t.Errorf("another account gets %d", got)
		}
	})
}

func TestPauseOfAllEndsWithAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var served atomic.Int64
		defer serveInside(t, n, "upstreams: {up: {url: \""+throttling(n, &served)+"\"}}\n")()
		client := &http.Client{Transport: n.Transport()}
		of := func(credential string) func(*http.Request) {
			return headers("Authorization", "", "", "Bearer "+credential).b
		}
		ask(t, client, "429 600", of("one"))
		ask(t, client, "429 600", of("two"))
		if got, _ := ask(t, client, "", of("three")); got == http.StatusOK && served.Load() > 1 {
			t.Errorf("another credential gets %d", got)
		}
		time.Sleep(2 * time.Second)
		for i := range 20 {
			if got, _ := ask(t, client, "", of(fmt.Sprint("other", i))); got != http.StatusOK {
				t.Errorf("after two seconds credential %d gets %d", i, got)
			}
		}
		if got, _ := ask(t, client, "", of("one")); got == http.StatusOK {
			t.Error("the pause of a throttled credential was shortened")
		}
	})
}

// A client that creates a JWT for every call is one credential: its throttles pause its own calls, and nobody else's.
func TestJWTsOfOneAccountPauseOnlyThisAccount(t *testing.T) {
	for name, c := range map[string]struct{ yaml, path, body string }{
		"HTTP":  {"", "/up/", ""},
		"model": {", preset: openai-compatible", "/up/v1/chat/completions", `{"model":"m","messages":[]}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				var served atomic.Int64
				defer serveInside(t, n, "upstreams: {up: {url: \""+throttling(n, &served)+"\", retry: off"+c.yaml+"}}\n")()
				client := &http.Client{Transport: n.Transport()}
				var minted atomic.Int64
				call := func(subject, throttle string) (sent bool) {
					jti := minted.Add(1)
					before := served.Load()
					callAs(t, client, "", "POST", c.path, c.body, func(h http.Header) {
						h.Set("Content-Type", "application/json")
						h.Set("X-Weir-Timeout", "1s")
						h.Set("Authorization", "Bearer "+jwtOf(fmt.Sprintf(`{"iss":"i","sub":%q,"jti":%d}`, subject, jti)))
						if throttle != "" {
							h.Set("X-Throttle", throttle)
						}
					})
					return served.Load() > before
				}
				early := make(chan bool, 3)
				for range 3 {
					go func() { early <- call("one", "429 600") }()
					time.Sleep(time.Millisecond)
				}
				for range 3 {
					<-early
				}
				if call("one", "") {
					t.Error("the account that was throttled is served")
				}
				for i := range 20 {
					if !call(fmt.Sprint("other", i), "") {
						t.Fatalf("account %d is not served", i)
					}
				}
			})
		})
	}
}

// A caller sends a forged JWT with another caller's account, and the upstream throttles it. This pauses the forger only.
func TestForgedJWTPausesNoOtherCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		var served atomic.Int64
		defer serveInside(t, n, twoTokens+"upstreams: {up: {url: \""+throttling(n, &served)+"\", retry: off}}\n")()
		client := &http.Client{Transport: n.Transport()}
		call := func(token, jwt, throttle string) int {
			status, _ := callAs(t, client, token, "GET", "/up/", "", func(h http.Header) {
				h.Set("Authorization", "Bearer "+jwt)
				h.Set("X-Weir-Timeout", "1s")
				if throttle != "" {
					h.Set("X-Throttle", throttle)
				}
			})
			return status
		}
		const claims = `{"iss":"i","sub":"victim"}`
		victim := jwtOf(claims)
		if got := call("TOKEN_A", victim, ""); got != http.StatusOK {
			t.Fatalf("the victim gets %d", got)
		}
		forged := strings.TrimSuffix(victim, victim[len(victim)-8:]) + "AAAAAAAA"
		if got := call("TOKEN_B", forged, "429 600"); got != http.StatusTooManyRequests {
			t.Fatalf("the forger gets %d", got)
		}
		if got := call("TOKEN_A", victim, ""); got != http.StatusOK {
			t.Errorf("after a throttle of the forger, the victim gets %d", got)
		}
		if got := call("TOKEN_B", jwtOf(`{"iss":"i","sub":"victim","jti":2}`), ""); got == http.StatusOK {
			t.Error("the forger is served with another JWT of the account that it was throttled with")
		}
	})
}

// A throttle of any form pauses the credential that received it, and no other one.
func TestThrottleOfAnyFormPausesOnlyItsCredential(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		header http.Header
		body   string
		pauses bool
	}{
		"GitHub, primary":    {403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Reset": {"946685400"}}, `{"message":"API rate limit exceeded for user ID 1."}`, true},
		"GitHub, secondary":  {403, http.Header{"Retry-After": {"600"}}, `{"message":"You have exceeded a secondary rate limit."}`, true},
		"420":                {420, http.Header{"Retry-After": {"600"}}, "", true},
		"without a wait":     {429, nil, "", false},
		"wait in the body":   {429, http.Header{"Content-Type": {"application/json"}}, `{"ok":false,"error_code":429,"parameters":{"retry_after":600}}`, true},
		"GraphQL":            {200, http.Header{"Content-Type": {"application/json"}}, `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{"requestedQueryCost":101,"throttleStatus":{"maximumAvailable":1000,"currentlyAvailable":1,"restoreRate":1}}}}`, false},
		"quota of a day":     {429, http.Header{"Retry-After": {"86400"}, "Content-Type": {"application/json"}}, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"RequestsPerDay"}]}]}}`, true},
		"AWS":                {400, http.Header{"X-Amzn-Errortype": {"ThrottlingException"}, "Retry-After": {"600"}}, `{"__type":"ThrottlingException"}`, true},
		"good, and the last": {200, http.Header{"X-Ratelimit-Limit": {"100"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"946685400"}, "Ratelimit": {`"default";r=0;t=600`}}, "", false},
		"absurd wait":        {429, http.Header{"Retry-After": {"99999999999"}}, "", true},
		"gRPC":               {200, http.Header{"Content-Type": {"application/grpc"}, "Grpc-Status": {"8"}, "Grpc-Retry-Pushback-Ms": {"600000"}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				var served atomic.Int64
				up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("X-Throttle") == "" {
						served.Add(1)
						return
					}
					for k, v := range c.header {
						w.Header()[k] = v
					}
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, c.body)
				}))
				defer serveInside(t, n, "upstreams: {up: {url: \""+up+"\", max_wait: 1s}}\n")()
				client := &http.Client{Transport: n.Transport()}
				of := func(credential string) func(*http.Request) {
					return headers("Authorization", "", "", "Bearer "+credential).b
				}
				for range 20 {
					ask(t, client, "yes", of("one"))
				}
				for i := range 10 {
					if got, took := ask(t, client, "", of(fmt.Sprint("other", i))); got != http.StatusOK || took > 100*time.Millisecond {
						t.Errorf("another credential gets %d after %v", got, took)
					}
				}
				before := served.Load()
				if ask(t, client, "", of("one")); c.pauses && served.Load() > before {
					t.Error("the credential that was throttled is served")
				}
			})
		})
	}
}
