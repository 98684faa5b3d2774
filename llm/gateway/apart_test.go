package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// A request with another cookie, another token in any header, or any other header that is not on the list is from
// another caller. Callers do not get each other's answers.
func TestOtherHeadersAreOtherRequests(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{}), Key: "of-weir"}})
	ones := [][]string{
		nil, {"Cookie", "session=1"}, {"Cookie", "session=2"}, {"X-Auth-Token", "a"}, {"X-Auth-Token", "b"}, {"X-Session", "a"}, {"Authorization", "Basic YTpi"},
		{"X-User", "ann"}, {"Accept-Language", "ja"}, {"Openai-Organization", "org"}, {"X-Goog-User-Project", "p"}, {"Accept", "image/png"}, {"From", "ann@example.com"},
		{"X-A", "b", "X-B", "c"}, {"X-A", "b"}, {"X-A", ""}, {"X-Amz-Security-Token", "t"}, {"X-Forward", "x"}, {"X-Auth-Token", "AWS4-a"}, {"X-Auth-Token", "AWS4-b"}, {"Cookie", "AWS4-HMAC-SHA256 Credential=a/b"}, {"Cookie", "AWS4-HMAC-SHA256 Credential=a/c"},
		{"Authorization", "AWS4-a"}, {"Authorization", "AWS4-b"},
	}
	for _, header := range ones {
		b.wants(b.chat("hi", header...), gateway.CacheHeader, "miss")
	}
	for _, header := range ones {
		b.wants(b.chat("hi", header...), gateway.CacheHeader, "hit")
	}
	for _, query := range []string{"?access_token=a", "?access_token=b", "?oauth_token=a", "?key=a", "?x=y"} {
		b.wants(b.post(completions+query, `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`), gateway.CacheHeader, "miss")
	}
	if n := len(b.sim.Log()); n != len(ones)+5 {
		t.Errorf("%d calls of %d callers", n, len(ones)+5)
	}
}

// With random headers in addition to those that SDKs change with each request, the same question with the same headers
// always hits the cache. With other headers it never does.
func TestRequestsShareAnAnswerOnlyIfTheyAreTheSame(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{}), Key: "of-weir"}})
	names := []string{"Cookie", "X-Auth-Token", "Authorization", "X-Api-Key", "X-A", "X_A", "X-User", "Openai-Project", "Anthropic-Beta", "X-Amz-Target"}
	came := make(map[string]bool)
	for range 1000 {
		var header, counts []string
		for _, name := range names {
			if random.IntN(5) == 0 {
				header = append(header, name, fmt.Sprint("v", random.IntN(2)))
			}
		}
		counts = append(counts, header...)
		for _, name := range gateway.Harmless {
			if name != "Cache-Control" && name != "Content-Length" && name != "Accept-Encoding" && random.IntN(3) == 0 {
				header = append(header, strings.Replace(name, "*", "Any", 1), fmt.Sprint(random.IntN(100)))
			}
		}
		key, want := fmt.Sprint(counts), "miss"
		if came[key] {
			want = "hit"
		}
		came[key] = true
		if a := b.chat("hi", header...); a.Header.Get(gateway.CacheHeader) != want {
			t.Fatalf("seed %d: %s, want %s: %q", seed, a.Header.Get(gateway.CacheHeader), want, header)
		}
	}
}

// Headers that an SDK changes with each request do not prevent a hit.
func TestRepeatsOfSDKsHit(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{}), Key: "of-weir"}})
	for i, want := range []string{"miss", "hit", "hit", "hit"} {
		n := fmt.Sprint(i)
		a := b.chat("hi", "Authorization", "Bearer sk", "X-Stainless-Retry-Count", n, "X-Stainless-Read-Timeout", n, "X-Client-Request-Id", n, "Idempotency-Key", n,
			"Traceparent", "00-"+n, "Tracestate", n, "Baggage", n, "X-Request-Id", n, "User-Agent", "openai/"+n, "Accept", []string{"application/json", "*/*"}[i%2], "X-Weir-Priority", []string{"high", "low"}[i%2])
		b.wants(a, gateway.CacheHeader, want)
		s := b.chat("hi", "Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/2026112"+n+"/eu/bedrock/aws4_request, SignedHeaders=host, Signature="+n, "X-Amz-Date", n, "Amz-Sdk-Invocation-Id", n, "X-Amz-Content-Sha256", n)
		b.wants(s, gateway.CacheHeader, want)
	}
	b.wants(b.chat("hi", "Authorization", "AWS4-HMAC-SHA256 Credential=AKIB/20261120/eu/bedrock/aws4_request, SignedHeaders=host, Signature=0"), gateway.CacheHeader, "miss")
}

// Only AWS can verify an AWS signature, and its access key ID is not a secret. If weir does not sign requests, it caches
// nothing for callers that it cannot identify.
func TestWhatOnlyAWSCanCheckIsNotKept(t *testing.T) {
	const signed = "AWS4-HMAC-SHA256 Credential=AKIA/20261122/eu/bedrock/aws4_request, SignedHeaders=host, Signature=0"
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	})
	b := before(t, gateway.Options{Cache: newCache(t, cache.Options{})}, quick(), p.url())
	for range 2 {
		if got, kept := b.chat("hi", "Authorization", signed).Header[gateway.CacheHeader]; kept {
			t.Errorf("%s is %q", gateway.CacheHeader, got)
		}
	}
	for _, want := range []string{"miss", "hit"} {
		b.wants(b.chat("hi", "Authorization", "Bearer sk"), gateway.CacheHeader, want)
	}
}

// An answer that is private, varies or sets a cookie is cached without its cookie.
func TestCookiesOfAnswersAreNotKept(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "__cf_bm=of-the-first")
		w.Header().Set("Cache-Control", "private")
		w.Header().Set("Vary", "Origin, X-Secret")
		w.Header().Set("Openai-Organization", "of-the-first")
		fmt.Fprint(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	})
	b := before(t, gateway.Options{Cache: newCache(t, cache.Options{})}, quick(), p.url())
	if first := b.chat("hi"); first.Header.Get("Set-Cookie") == "" {
		t.Error("the cookie did not reach whom it was for")
	}
	second := b.chat("hi")
	b.wants(second, gateway.CacheHeader, "hit")
	for _, name := range []string{"Set-Cookie", "Openai-Organization"} {
		if v := second.Header.Get(name); v != "" {
			t.Errorf("%s: %s", name, v)
		}
	}
}

// The cache separates callers that have different tokens, unless they belong to the same tenant.
func TestTokensWithClaimsAreNoKeys(t *testing.T) {
	whose := map[string]string{"one": "ann", "two": "ann", "three": "bob", "four": ""}
	read := func(r *http.Request) (string, error) { return whose[r.Header.Get("X-Token")], nil }
	callers := callersBy(t, read)
	callers.Consumed = []string{"X-Token"}
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{}), Callers: callers}})
	for i, want := range []string{"miss", "hit", "miss", "miss", "miss"} {
		b.wants(b.chat("hi", "X-Token", []string{"one", "two", "three", "four", "five"}[i]), gateway.CacheHeader, want)
	}
}

func TestTheListIsPublished(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/llm.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range gateway.Harmless {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/reference/llm.md does not name %s", name)
		}
	}
}
