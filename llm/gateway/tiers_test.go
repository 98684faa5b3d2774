package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// An upstreamFunc is a provider that a test implements, with the requests that it received.
type upstreamFunc struct {
	*httptest.Server
	mu   sync.Mutex
	came []*http.Request
	body []string
}

func provider(t *testing.T, answer http.HandlerFunc) *upstreamFunc {
	t.Helper()
	u := new(upstreamFunc)
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.came, u.body = append(u.came, r), append(u.body, string(b))
		u.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstreamFunc) url() *url.URL { at, _ := url.Parse(u.URL); return at }

func (u *upstreamFunc) requests() ([]*http.Request, []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.came, u.body
}

// before returns a sidecar in front of providers. The first one is chat.
func before(t *testing.T, o gateway.Options, policy weir.Policy, at *url.URL, more ...proxy.Upstream) *bench {
	t.Helper()
	o.Name = "chat"
	o.Tokens = new(tokens.Estimator)
	d, err := gateway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t}
	if b.p, err = proxy.New(append([]proxy.Upstream{{Name: "chat", URL: at, Policy: policy, Dialect: d}}, more...), weir.Options{}); err != nil {
		t.Fatal(err)
	}
	b.weir = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.calls.Add(1)
		defer b.calls.Done()
		b.p.ServeHTTP(w, r)
	}))
	t.Cleanup(b.weir.Close)
	return b
}

// elsewhere returns a second upstream for the cascade of chat.
func elsewhere(t *testing.T, o gateway.Options, at *url.URL) proxy.Upstream {
	t.Helper()
	o.Name, o.Tokens = "other", new(tokens.Estimator)
	d, err := gateway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return proxy.Upstream{Name: "other", URL: at, Policy: quick(), Dialect: d}
}

// down is a provider that refuses every request with a long error.
func down(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "of-the-provider")
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintf(w, `{"error":{"message":%q}}`, strings.Repeat("down ", 400_000))
}

func TestTheProvidersErrorIsWholeAfterOtherTiersHaveFailed(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Model: "another"})
	b := before(t, gateway.Options{Cascade: c, Tiers: all}, quick(), provider(t, down).url())
	a := b.chat("hi")
	if a.err != nil || a.StatusCode != 503 || !json.Valid([]byte(a.body)) || a.Header.Get("X-Request-Id") == "" {
		t.Errorf("read %v, %d and %d bytes that end with %.40q", a.err, a.StatusCode, len(a.body), a.body[max(0, len(a.body)-40):])
	}
}

func TestARejectionIsWhole(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	long := fmt.Sprintf(`{"error":{"message":%q}}`, strings.Repeat("wrong ", 400_000))
	b := before(t, gateway.Options{Cascade: c, Tiers: all}, quick(), provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, long)
	}).url())
	if a := b.chat("hi"); a.err != nil || a.StatusCode != 400 || a.body != long {
		t.Errorf("read %v, %d and %d bytes of %d", a.err, a.StatusCode, len(a.body), len(long))
	}
}

// A response that breaks before any content is not an answer. No caller gets status 200 for it.
func TestNobodyGetsABroken200(t *testing.T) {
	for _, tiered := range []bool{false, true} {
		fresh := func() *bench { // a new bench whose breakers are closed
			var o gateway.Options
			if tiered {
				o.Cascade, o.Tiers = tiers(t, gateway.Tier{Model: "gpt-4o-mini"})
			}
			return start(t, setup{policy: quick(), options: o})
		}
		for _, f := range []llmsim.Fault{
			{Kind: llmsim.Cut, Times: -1}, {Kind: llmsim.EmptyBody, Times: -1}, {Kind: llmsim.Drop, Where: llmsim.AfterHeaders, Times: -1},
		} {
			b := fresh()
			b.sim.Fault(f)
			a := b.stream("hi")
			var said struct {
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal([]byte(a.body), &said); a.StatusCode != 502 || err != nil || said.Error.Type != "server_error" {
				t.Errorf("tiers %v, %s: %d %q", tiered, f.Kind, a.StatusCode, a.body)
			}
		}
		b := fresh()
		b.sim.Fault(llmsim.Fault{Kind: llmsim.StreamError, Times: -1})
		if a := b.stream("hi"); a.StatusCode != 200 || !strings.Contains(a.body, `"error"`) || a.err != nil {
			t.Errorf("tiers %v: an error of the provider's own: %d %s (%v)", tiered, a.StatusCode, a.body, a.err)
		}
	}
}

func TestAStreamThatNeverBeginsTakesTooLong(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{FirstContent: 50 * time.Millisecond}})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.Hang, Where: llmsim.AfterHeaders})
	if a := b.stream("hi"); a.StatusCode != 504 {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// If a caller received the start of a stream without content, the stream ends with an error.
func TestAStreamThatWasGivenOutEndsWithAnError(t *testing.T) {
	t.Parallel() // parallel because it waits; the times are far enough apart for a busy machine
	b := start(t, setup{policy: quick(), options: gateway.Options{Hold: 20 * time.Millisecond, FirstContent: 4 * time.Second}})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.Hang, Where: llmsim.AfterHeaders})
	if a := b.stream("hi"); a.StatusCode != 200 || !strings.Contains(a.body, `"error":{`) || a.err == nil {
		t.Errorf("%d %q (%v)", a.StatusCode, a.body, a.err)
	}
}

// A caller that did not ask for usage does not get it from the second model either.
func TestTheSecondModelsUsageIsWeirsOwn(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Model: "gpt-4o-mini"})
	p := quick()
	p.Limits = []limit.Limit{tokenLimit(1, time.Minute, 100_000)}
	b := start(t, setup{policy: p, options: gateway.Options{Cascade: c, Tiers: all}})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.Error, Model: "gpt-4o", Times: -1})
	a := b.stream("hi")
	b.wants(a, gateway.TierHeader, "tier1")
	if strings.Contains(a.body, `"usage":{`) || strings.Contains(a.body, `"choices":[]`) {
		t.Errorf("the stream has usage: %s", a.body)
	}
}

func TestWhoAsksForUsageGetsItFromTheCache(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{})}})
	const ask = `{"model":"gpt-4o","stream":true,%s"messages":[{"role":"user","content":"hi"}]}`
	const options = `"stream_options":{"include_usage":true},`
	b.post(completions, fmt.Sprintf(ask, ""))
	with := b.post(completions, fmt.Sprintf(ask, options))
	b.wants(with, gateway.CacheHeader, "hit")
	if !strings.Contains(with.body, `"usage":{`) {
		t.Errorf("it asked for the usage: %s", with.body)
	}
	if without := b.post(completions, fmt.Sprintf(ask, "")); strings.Contains(without.body, `"usage":{`) {
		t.Errorf("it did not ask for the usage: %s", without.body)
	}
}

func TestAnArrayIsNoEventStream(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{})}})
	const body = `{"contents":[{"parts":[{"text":"hi"}]}]}`
	const key = "X-Goog-Api-Key"
	const path = "/v1beta/models/gemini-2.0-flash:streamGenerateContent"
	first := b.post(path+"?alt=sse", body, key, "k")
	if first.StatusCode != 200 {
		t.Fatalf("%d %s", first.StatusCode, first.body)
	}
	array := b.post(path, body, key, "k")
	b.wants(array, gateway.CacheHeader, "hit")
	if !json.Valid([]byte(array.body)) || !strings.HasPrefix(array.Header.Get("Content-Type"), "application/json") {
		t.Errorf("as an array it is %s %s", array.Header.Get("Content-Type"), array.body)
	}
	whole := b.post("/v1beta/models/gemini-2.0-flash:generateContent", body, key, "k")
	b.wants(whole, gateway.CacheHeader, "hit")
	b.wants(b.post("/v1/models/gemini-2.0-flash:generateContent", body, key, "k"), gateway.CacheHeader, "miss")
	b.wants(b.post("/v1beta/models/gemini-2.0-flash:generateContent?key=another", body), gateway.CacheHeader, "miss")
}

// The tenants in an upstream's own keys separate answers. Without tenants, callers with different keys are separate,
// even if weir sends its own key.
func TestNothingCrossesTenants(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{
		Cache: newCache(t, cache.Options{}), Key: "of-weir", Keys: map[string]httpx.Source{"tenant": {Kind: httpx.FromHeader, Name: "X-Tenant"}},
	}})
	for i, header := range [][]string{{"X-Tenant", "a"}, {"X-Tenant", "b"}, {"Authorization", "Bearer one"}, {"Authorization", "Bearer two"}} {
		b.wants(b.chat("hi", header...), gateway.CacheHeader, "miss")
		b.wants(b.chat("hi", header...), gateway.CacheHeader, "hit")
		if n := len(b.sim.Log()); n != i+1 {
			t.Errorf("%d calls after %q, want %d", n, header, i+1)
		}
	}
}

func TestVersionsAreKeptApart(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{})}})
	const azure = "/openai/deployments/gpt-4o/chat/completions"
	const body = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`
	if a := b.post(azure+"?api-version=2024-06-01", body); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	b.wants(b.post(azure+"?api-version=2024-10-21", body), gateway.CacheHeader, "miss")
	b.wants(b.post(azure+"?api-version=2024-06-01", body), gateway.CacheHeader, "hit")
}

// callersBy returns limits of callers by a key. Calls do not wait for them.
func callersBy(t *testing.T, read gateway.Key, limits ...limit.Limit) *gateway.Callers {
	t.Helper()
	u, err := weir.New("callers", weir.Policy{Limits: limits, MaxWait: -1}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &gateway.Callers{Limits: u, Keys: map[string]gateway.Key{"user": read}}
}

func perUser(amount int64, unit string) limit.Limit {
	return limit.Limit{Name: "user", Scope: "user", Unit: unit, Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: amount}}
}

func used(t *testing.T, c *gateway.Callers) int64 {
	t.Helper()
	for _, l := range c.Limits.Look(10).Limits {
		return l.Level.Full - l.Level.Left
	}
	t.Fatal("there is no limit")
	return 0
}

func TestFailuresCostCallersNothing(t *testing.T) {
	user := func(r *http.Request) (string, error) { return "ann", nil }
	for _, c := range []struct {
		fault   llmsim.Fault
		unit    string
		want    int64
		message bool
	}{
		{fault: llmsim.Fault{Kind: llmsim.Error, Status: 500}, unit: "tokens"},
		{fault: llmsim.Fault{Kind: llmsim.Error, Status: 500}},
		{fault: llmsim.Fault{Kind: llmsim.Throttle, NoHint: true}},
		{fault: llmsim.Fault{Kind: llmsim.Reset}},
		{fault: llmsim.Fault{Kind: llmsim.EmptyBody}},
		{fault: llmsim.Fault{Kind: llmsim.Error, Status: 400}, unit: "tokens"},
		{fault: llmsim.Fault{Kind: llmsim.Error, Status: 400}, want: 1},
		{fault: llmsim.Fault{Kind: llmsim.Error, Status: 500}, unit: "tokens", message: true},
		{fault: llmsim.Fault{Kind: llmsim.Error, Status: 500}, want: 1, message: true},
	} {
		callers := callersBy(t, user, perUser(1000, c.unit))
		o := gateway.Options{Callers: callers}
		if c.message {
			o.Cascade, o.Tiers = tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
		}
		b := start(t, setup{policy: quick(), options: o})
		b.sim.Fault(c.fault)
		a := b.chat("hi")
		b.calls.Wait()
		if got := used(t, callers); got != c.want {
			t.Errorf("%s %d, message %v: %d %s were used for a %d, want %d", c.fault.Kind, c.fault.Status, c.message, got, c.unit, a.StatusCode, c.want)
		}
	}
}

// The caller is determined from the received request, before headers are removed for another provider.
func TestTheSecondUpstreamKnowsTheCaller(t *testing.T) {
	good := provider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`)
	})
	callers := callersBy(t, func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") == "" {
			return "", fmt.Errorf("there is none")
		}
		return "ann", nil
	}, perUser(10, ""))
	var mu sync.Mutex
	var told []gateway.Used
	second := gateway.Options{Callers: callers, Key: "of-other", Events: gateway.Events{Used: func(u gateway.Used) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, u)
	}}}
	c, all := tiers(t, gateway.Tier{Upstream: "other"})
	origin := func(upstream string) (string, bool) { return "https://" + upstream, true }
	b := before(t, gateway.Options{Callers: callers, Cascade: c, Tiers: all, Origin: origin}, quick(), provider(t, down).url(), elsewhere(t, second, good.url()))
	a := b.chat("hi", "Cookie", "session=1", "X-Weir-Tier", "forged")
	b.calls.Wait()
	if a.StatusCode != 200 || a.says(t) != "fine" || used(t, callers) != 1 {
		t.Errorf("%d %s, %d used", a.StatusCode, a.body, used(t, callers))
	}
	mu.Lock()
	defer mu.Unlock()
	if len(told) != 1 || told[0].User != "ann" {
		t.Errorf("told %+v", told)
	}
	came, _ := good.requests()
	if h := came[0].Header; h.Get("Authorization") != "Bearer of-other" || h.Get("Cookie") != "" || h.Get("X-Weir-Tier") != "" {
		t.Errorf("it came with %v", h)
	}
}

// If another provider rejects a request, the next tier is asked.
func TestTheSecondUpstreamsRefusalLeadsToTheNextTier(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Upstream: "other"}, gateway.Tier{Messages: []string{"We are sorry."}})
	other := elsewhere(t, gateway.Options{Inner: picky{}}, provider(t, down).url())
	b := before(t, gateway.Options{Cascade: c, Tiers: all}, quick(), provider(t, down).url(), other)
	if a := b.chat("hi"); a.StatusCode != 200 || a.says(t) != "We are sorry." {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// A picky is a dialect that removes credentials and refuses requests without them.
type picky struct{}

func (picky) Hear(r *http.Request, _ string) (httpx.Exchange, *refuse.Facts) {
	if r.Header.Get("X-Signature") == "" {
		return nil, &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: "not signed"}
	}
	r.Header.Del("X-Signature")
	return signing{}, nil
}

type signing struct{ httpx.Exchange }

func (signing) Describe(*weir.Call)           {}
func (signing) Attempt(r *http.Request) error { r.Header.Set("X-Signature", "of-weir"); return nil }
func (signing) Answered(_ *http.Response, o outcome.Outcome) outcome.Outcome {
	return o
}

func TestWhatASignerTookOutIsThereForTheNextTier(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Model: "another"})
	good := provider(t, func(w http.ResponseWriter, r *http.Request) {
		if n := r.Header.Get("X-Signature"); n != "of-weir" {
			t.Errorf("signed %q", n)
		}
		down(w, r)
	})
	b := before(t, gateway.Options{Inner: picky{}, Cascade: c, Tiers: all}, quick(), good.url())
	b.chat("hi", "X-Signature", "of-caller")
	if came, bodies := good.requests(); len(came) != 2 || !strings.Contains(bodies[1], `"another"`) {
		t.Errorf("%d requests came: %q", len(came), bodies)
	}
}

func TestTheKeyStandsWhereTheFamilyHasIt(t *testing.T) {
	b := start(t, setup{
		policy: quick(), options: gateway.Options{Key: "of-weir"}, // the path determines the family
		sim: llmsim.Config{Keys: map[string]llmsim.Key{"of-weir": {Name: "weir"}}},
	})
	for path, body := range map[string]string{
		"/v1/messages": `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1beta/models/m:generateContent?k%65y=of-caller": `{"contents":[{"parts":[{"text":"hi"}]}]}`,
		completions: `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
	} {
		if a := b.post(path, body, "Anthropic-Version", "2023-06-01"); a.StatusCode != 200 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	for _, v := range b.sim.Violations() {
		if strings.Contains(fmt.Sprint(v), "key") {
			t.Error(v)
		}
	}
}

func TestLargeNumbersInClaimsStayApart(t *testing.T) {
	claims, err := gateway.NewClaims(gateway.ClaimOptions{Secret: []byte("0123456789abcdef0123456789abcdef")})
	if err != nil {
		t.Fatal(err)
	}
	read := claims.Key("id")
	for _, id := range []string{"9007199254740993", "12345678", "7"} {
		token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{"id": json.Number(id), "exp": time.Now().Add(time.Hour).Unix()}).SignedString([]byte("0123456789abcdef0123456789abcdef"))
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		if got, err := read(r); err != nil || got != id {
			t.Errorf("the id is %q (%v), want %s", got, err, id)
		}
	}
}

// A request that started before a configuration reload keeps its tiers.
func TestTiersMayChangeMeanwhile(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Model: "another"}, gateway.Tier{Messages: []string{"We are sorry."}})
	at := provider(t, down)
	b := before(t, gateway.Options{Cascade: c, Tiers: all}, quick(), at.url())
	next := c.Config()
	next.Tiers = []cascade.TierConfig{next.Tiers[0], next.Tiers[2], {Name: "new", Instant: true}, {Name: "newer", Instant: true}}
	if err := c.Set(next); err != nil {
		t.Fatal(err)
	}
	a := b.chat("hi")
	b.wants(a, gateway.TierHeader, "tier2")
	if came, _ := at.requests(); a.StatusCode != 200 || a.says(t) != "We are sorry." || len(came) != 1 {
		t.Errorf("%d %s after %d requests", a.StatusCode, a.body, len(came))
	}
}

// While no tier may be asked, the refusal contains a retry time.
func TestACascadeWithoutATierSaysWhenToComeBack(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Model: "another"})
	b := before(t, gateway.Options{Cascade: c, Tiers: all}, quick(), provider(t, down).url())
	var a answer
	for range 10 {
		begin := time.Now()
		for range 4 { // three consecutive failures open a tier's breaker
			a = b.chat("hi")
		}
		if a.Header.Get(proxy.RefusedHeader) != "" || time.Since(begin) < time.Second { // otherwise it may be time for the probe
			break
		}
	}
	if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" || a.Header.Get(proxy.RefusedHeader) != string(weir.CircuitOpen) {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
}

func TestRealtimePassesThrough(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	echo := provider(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		line, _ := rw.ReadString('\n')
		_, _ = io.WriteString(conn, "you said "+line)
	})
	callers := callersBy(t, func(*http.Request) (string, error) { return "ann", nil }, perUser(10, ""))
	b := before(t, gateway.Options{Callers: callers, Cascade: c, Tiers: all}, quick(), echo.url())
	conn, err := net.Dial("tcp", b.weir.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	_, _ = io.WriteString(conn, "GET /chat/v1/realtime?model=m HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != 101 {
		t.Fatalf("%v %v", resp, err)
	}
	_, _ = io.WriteString(conn, "hello\n")
	if got, err := in.ReadString('\n'); got != "you said hello\n" {
		t.Errorf("got %q (%v)", got, err)
	}
}

// A caller that disconnects before the headers is charged, and does not count as a failure of the tier.
func TestACallerWhoLeavesEarlySaysNothingOfTheTier(t *testing.T) {
	callers := callersBy(t, func(*http.Request) (string, error) { return "ann", nil }, perUser(10, ""))
	came := make(chan struct{})
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	b := before(t, gateway.Options{Callers: callers, Cascade: c, Tiers: all}, quick(), provider(t, func(_ http.ResponseWriter, r *http.Request) {
		close(came)
		<-r.Context().Done()
	}).url())
	ctx, leave := context.WithCancel(t.Context())
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, b.weir.URL+"/chat"+completions, strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	go func() { <-came; leave() }()
	if _, err := http.DefaultClient.Do(r); err == nil {
		t.Error("there was an answer")
	}
	b.calls.Wait()
	if got := used(t, callers); got != 1 {
		t.Errorf("%d used", got)
	}
	if v := c.View()[0]; v.InARow != 0 {
		t.Errorf("the tier has %+v", v)
	}
}

// Another provider gets neither the credentials that the caller sends to its own provider, nor the caller's identity.
func TestAnotherProviderIsNotShownTheCaller(t *testing.T) {
	secret := map[string]string{
		"Authorization": "Bearer sk-1", "X-Api-Key": "k1", "Api-Key": "k2", "X-Goog-Api-Key": "k3", "Cf-Aig-Authorization": "Bearer cf", "Ocp-Apim-Subscription-Key": "k4",
		"X-Auth-Token": "t1", "X-Amz-Security-Token": "t2", "Cookie": "session=1", "X-Session-Id": "s1", "Openai-Organization": "org-1", "X-Goog-User-Project": "p1", "Helicone-Auth": "Bearer h",
		"X-User": "ann",
	}
	plain := map[string]string{"Accept-Language": "ja", "Openai-Beta": "assistants=v2", "User-Agent": "tests"}
	const fine = `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":2}}`
	for _, trusted := range []bool{false, true} {
		good := provider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, fine)
		})
		c, all := tiers(t, gateway.Tier{Upstream: "other"})
		origin := func(upstream string) (string, bool) {
			if trusted {
				return "https://the.same", false
			}
			return "https://" + upstream, false
		}
		b := before(t, gateway.Options{Callers: callers(t), Cascade: c, Tiers: all, Origin: origin}, quick(), provider(t, down).url(), elsewhere(t, gateway.Options{}, good.url()))
		var header []string
		for _, h := range []map[string]string{secret, plain} {
			for name, value := range h {
				header = append(header, name, value)
			}
		}
		a := b.post(completions+"?api-version=7&key=k5&subscription-key=k6", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, header...)
		came, _ := good.requests()
		if a.StatusCode != 200 || len(came) != 1 {
			t.Fatalf("%d %s", a.StatusCode, a.body)
		}
		for name, value := range secret {
			if got := came[0].Header.Get(name); got != "" && (!trusted || name == "X-User") || got != value && trusted && name != "X-User" {
				t.Errorf("trusted %v: %s: %q", trusted, name, got)
			}
		}
		for name, value := range plain {
			if got := came[0].Header.Get(name); got != value {
				t.Errorf("trusted %v: %s: %q", trusted, name, got)
			}
		}
		if q := came[0].URL.RawQuery; trusted == (q == "api-version=7") {
			t.Errorf("trusted %v: query %s", trusted, q)
		}
	}
}
