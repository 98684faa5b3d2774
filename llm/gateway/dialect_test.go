package gateway_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A bench is a sidecar in front of a simulated provider.
type bench struct {
	*testing.T
	sim  *llmsim.Provider
	at   *llmsim.Server
	weir *httptest.Server
	p    *proxy.Proxy

	calls sync.WaitGroup // running calls in the sidecar
}

// setup has the settings that a test changes.
type setup struct {
	sim     llmsim.Config
	policy  weir.Policy
	options gateway.Options
	more    []proxy.Upstream // in addition to chat; without a URL they use the simulator's
	weir    weir.Options
	at      string // replaces the simulator's URL
	keys    map[string]httpx.Source
}

// quick returns a policy with short waits and no breaker.
func quick() weir.Policy {
	p := weir.Policy{Undeclared: true}
	p.Retry.Attempts, p.Retry.Base = 1, time.Millisecond
	p.Breaker.Off = true
	return p
}

func start(t *testing.T, s setup) *bench {
	t.Helper()
	b := &bench{T: t, sim: llmsim.New(s.sim)}
	var err error
	if b.at, err = b.sim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.at.Close)
	at, _ := url.Parse(cmp.Or(s.at, b.at.URL))
	s.options.Name = "chat"
	if s.options.Tokens == nil {
		s.options.Tokens = new(tokens.Estimator)
	}
	d, err := gateway.New(s.options)
	if err != nil {
		t.Fatal(err)
	}
	all := []proxy.Upstream{{Name: "chat", URL: at, Policy: s.policy, Dialect: d, Keys: s.keys}}
	for _, u := range s.more {
		if u.URL == nil {
			u.URL = at
		}
		all = append(all, u)
	}
	if b.p, err = proxy.New(all, s.weir); err != nil {
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

// An answer is a response that a caller received.
type answer struct {
	*http.Response
	body string
	err  error // error while reading the body
}

func (b *bench) post(path, body string, header ...string) answer {
	b.Helper()
	r, err := http.NewRequest(http.MethodPost, b.weir.URL+"/chat"+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer sk-test")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp, string(text), err}
}

const completions = "/v1/chat/completions"

// chat sends an OpenAI chat request.
func (b *bench) chat(text string, header ...string) answer {
	b.Helper()
	return b.post(completions, fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":%q}]}`, text), header...)
}

func (b *bench) stream(text string, header ...string) answer {
	b.Helper()
	return b.post(completions, fmt.Sprintf(`{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":%q}]}`, text), header...)
}

// says returns the text of an OpenAI answer, streamed or not.
func (a answer) says(t *testing.T) string {
	t.Helper()
	type delta struct{ Content string }
	type choices struct {
		Choices []struct{ Message, Delta delta }
	}
	var all strings.Builder
	if !strings.HasPrefix(a.Header.Get("Content-Type"), "text/event-stream") {
		var c choices
		if err := json.Unmarshal([]byte(a.body), &c); err != nil || len(c.Choices) == 0 {
			t.Fatalf("not an answer: %d %s (%v)", a.StatusCode, a.body, err)
		}
		return c.Choices[0].Message.Content
	}
	for line := range strings.Lines(a.body) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var c choices
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("not a chunk: %s", data)
		}
		for _, choice := range c.Choices {
			all.WriteString(choice.Delta.Content)
		}
	}
	return all.String()
}

func (b *bench) wants(a answer, header, value string) {
	b.Helper()
	if got := a.Header.Get(header); got != value {
		b.Errorf("%s is %q, want %q", header, got, value)
	}
}

func tokenLimit(amount int64, per time.Duration, burst int64) limit.Limit {
	return limit.Limit{Name: "tpm", Unit: "tokens", Rate: bucket.Rate{Amount: amount, Per: per, Burst: burst}}
}

// left returns the remaining amount of a limit after all calls have ended.
func (b *bench) left(upstream, name string) int64 {
	b.Helper()
	b.calls.Wait() // a call is settled after its caller has the answer
	for _, l := range b.p.Upstreams()[upstream].Look(10).Limits {
		if l.Limit.Name == name {
			return l.Level.Left
		}
	}
	b.Fatalf("there is no limit %s", name)
	return 0
}

func TestTokensAreReservedAndSettled(t *testing.T) {
	p := quick()
	p.Limits = []limit.Limit{tokenLimit(1, time.Minute, 100_000)}
	b := start(t, setup{policy: p, sim: llmsim.Config{Default: llmsim.Model{OutputTokens: 50}}})
	a := b.chat("hello there")
	if a.StatusCode != 200 || !strings.Contains(a.says(t), "hello there") {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	var used struct {
		Usage struct{ Total_tokens int64 }
	}
	if err := json.Unmarshal([]byte(a.body), &used); err != nil {
		t.Fatal(err)
	}
	if got := b.left("chat", "tpm"); got != 100_000-used.Usage.Total_tokens {
		t.Errorf("%d tokens are left after a call that used %d", got, used.Usage.Total_tokens)
	}
	before := b.left("chat", "tpm")
	s := b.stream("hello again")
	if !strings.Contains(s.says(t), "hello again") || strings.Contains(s.body, `"usage":{`) {
		t.Errorf("the stream is %s", s.body)
	}
	if got := b.left("chat", "tpm"); got >= before || got < before-200 {
		t.Errorf("%d tokens are left of %d after a stream of about 60", got, before)
	}
	for _, v := range b.sim.Violations() {
		t.Error(v)
	}
}

func TestAnAnswerWithoutUsageSettlesAtTheEstimate(t *testing.T) {
	p := quick()
	p.Limits = []limit.Limit{tokenLimit(1, time.Minute, 100_000)}
	b := start(t, setup{policy: p})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.NoUsage, Times: -1})
	b.post(completions, `{"model":"gpt-4o","max_tokens":500,"messages":[{"role":"user","content":"hi"}]}`)
	if got := b.left("chat", "tpm"); got > 100_000-500 || got < 100_000-700 {
		t.Errorf("%d tokens are left, want all but the 500 that were allowed and a few", got)
	}
}

// tiers returns a cascade of another model, the cache, and a message.
func tiers(t testing.TB, more ...gateway.Tier) (*cascade.Cascade, []gateway.Tier) {
	t.Helper()
	all := append([]gateway.Tier{{}}, more...)
	c := cascade.Config{Deadline: 5 * time.Second, Tiers: []cascade.TierConfig{{Name: "primary", Confidence: 1}}}
	for i, tier := range more {
		c.Tiers = append(c.Tiers, cascade.TierConfig{
			Name: fmt.Sprint("tier", i+1), Confidence: 0.5, Instant: tier.Upstream == "" && tier.Model == "",
		})
	}
	made, err := cascade.New(c, cascade.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return made, all
}

func TestTheNextTierAnswers(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Model: "gpt-4o-mini"}, gateway.Tier{Messages: []string{"We are sorry."}})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all}})
	for _, ask := range []func(string, ...string) answer{b.chat, b.stream} {
		b.sim.Clear()
		a := ask("one")
		b.wants(a, gateway.TierHeader, "primary")
		b.wants(a, gateway.DegradedHeader, "false")

		b.sim.Fault(llmsim.Fault{Kind: llmsim.Error, Model: "gpt-4o", Status: 500, Times: 1})
		a = ask("two")
		b.wants(a, gateway.TierHeader, "tier1")
		b.wants(a, gateway.DegradedHeader, "true")
		b.wants(a, gateway.ConfidenceHeader, "0.5")
		if got := a.says(t); !strings.Contains(got, "gpt-4o-mini") || !strings.Contains(got, "two") {
			t.Errorf("the second model says %q", got)
		}

		b.sim.Fault(llmsim.Fault{Kind: llmsim.Error, Status: 503, Times: 2})
		a = ask("three")
		b.wants(a, gateway.TierHeader, "tier2")
		if got := a.says(t); got != "We are sorry." || a.StatusCode != 200 {
			t.Errorf("the message is %q (%d)", got, a.StatusCode)
		}
	}
}

func TestAnErrorInsideAStreamLeadsToTheNextTier(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all}})
	for _, f := range []llmsim.Fault{
		{Kind: llmsim.StreamError}, {Kind: llmsim.Cut}, {Kind: llmsim.EmptyBody}, {Kind: llmsim.Reset, Where: llmsim.AfterHeaders},
		{Kind: llmsim.Reset}, {Kind: llmsim.Throttle, NoHint: true},
	} {
		b.sim.Fault(f)
		a := b.stream("hi")
		if got := a.says(t); got != "We are sorry." {
			t.Errorf("%s %s: %q", f.Kind, f.Where, got)
		}
		b.sim.Clear()
	}
}

func TestAStreamThatIsCutEndsWithAnError(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all}})
	for _, f := range []llmsim.Fault{
		{Kind: llmsim.Cut, Events: 2}, {Kind: llmsim.Reset, Where: llmsim.AfterContent}, {Kind: llmsim.Drop, Where: llmsim.AfterContent},
	} {
		b.sim.Fault(f)
		a := b.stream("tell me a long story")
		if a.err == nil || !strings.Contains(a.body, `"error":{`) || strings.Contains(a.body, "[DONE]") {
			t.Errorf("%s: read %v and %s; want an error event and no end", f.Kind, a.err, a.body)
		}
		b.sim.Clear()
	}
}

func TestASilentStreamEnds(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all, Idle: 50 * time.Millisecond}})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.Hang, Where: llmsim.AfterContent})
	if a := b.stream("tell me a long story"); a.err == nil || !strings.Contains(a.body, "silent") {
		t.Errorf("read %v and %s", a.err, a.body)
	}
	b.over()
	// A second bench with a short timeout, because a busy machine may process the data late.
	b = start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all, FirstContent: 50 * time.Millisecond}})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.Hang, Where: llmsim.AfterHeaders})
	if a := b.stream("hi"); a.says(t) != "We are sorry." {
		t.Errorf("a stream that never begins: %s", a.body)
	}
	b.over()
}

// over waits until the provider has no open streams. It notices the end of the last one with a delay.
func (b *bench) over() {
	b.Helper()
	late := time.After(20 * time.Second)
	for b.sim.Open() > 0 {
		select {
		case <-late:
			b.Fatalf("%d streams are open at the provider", b.sim.Open())
		case <-time.After(time.Millisecond):
		}
	}
}

func newCache(t testing.TB, o cache.Options) *cache.Cache {
	t.Helper()
	c, err := cache.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAnswersAreKept(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{})}})
	first := b.chat("what is up?")
	b.wants(first, gateway.CacheHeader, "miss")
	second := b.chat("what is up?")
	b.wants(second, gateway.CacheHeader, "hit")
	if marked := `{"metadata":{"weir_confidence":"1","weir_degraded":"false","weir_tier":"cached"},` + first.body[1:]; second.body != marked {
		t.Errorf("the answer that was kept is %s", second.body)
	}
	streamed := b.stream("what is up?")
	b.wants(streamed, gateway.CacheHeader, "hit")
	if streamed.says(t) != first.says(t) {
		t.Errorf("as a stream it is %s", streamed.body)
	}
	b.wants(b.chat("what is up?", "Authorization", "Bearer sk-another"), gateway.CacheHeader, "miss")
	b.wants(b.chat("what is down?"), gateway.CacheHeader, "miss")
	if n := len(b.sim.Log()); n != 3 {
		t.Errorf("%d calls came to the provider, want 3", n)
	}
}

func TestBadAnswersAreNotKept(t *testing.T) {
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{})}})
	for i, f := range []llmsim.Fault{
		{Kind: llmsim.Error, Status: 500}, {Kind: llmsim.Throttle}, {Kind: llmsim.BadJSON}, {Kind: llmsim.EmptyBody}, {Kind: llmsim.Cut, Events: 2},
	} {
		b.sim.Fault(f)
		ask := b.chat
		if f.Kind == llmsim.Cut {
			ask = b.stream
		}
		text := fmt.Sprint("question ", i)
		ask(text)
		b.sim.Clear()
		if a := ask(text); a.Header.Get(gateway.CacheHeader) != "miss" || a.StatusCode != 200 {
			t.Errorf("after %s: %d, cache %s", f.Kind, a.StatusCode, a.Header.Get(gateway.CacheHeader))
		}
	}
	short := `{"model":"gpt-4o","max_tokens":2,"messages":[{"role":"user","content":"tell me a very long story of many words"}]}`
	b.post(completions, short)
	b.wants(b.post(completions, short), gateway.CacheHeader, "miss")
}

func TestAnOldAnswerIsBetterThanNone(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Cached: true}, gateway.Tier{Messages: []string{"We are sorry."}})
	kept := newCache(t, cache.Options{TTL: time.Nanosecond, StaleWhileRevalidate: -1})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: kept, Cascade: c, Tiers: all}})
	first := b.chat("where are you?")
	b.sim.Fault(llmsim.Fault{Kind: llmsim.Error, Times: -1})
	a := b.chat("where are you?")
	b.wants(a, gateway.TierHeader, "tier1")
	b.wants(a, gateway.CacheHeader, "old")
	b.wants(a, gateway.DegradedHeader, "true")
	if marked := `{"metadata":{"weir_confidence":"0.5","weir_degraded":"true","weir_tier":"tier1"},` + first.body[1:]; a.body != marked || a.Header.Get("Age") == "" {
		t.Errorf("it is %s", a.body)
	}
	b.wants(b.chat("who are you?"), gateway.TierHeader, "tier2")
}

func TestCallersHaveTheirShare(t *testing.T) {
	user := limit.Limit{Name: "user", Scope: "user", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 2}}
	limits, err := weir.New("callers", weir.Policy{Limits: []limit.Limit{user}, MaxWait: -1}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	callers := &gateway.Callers{Limits: limits, Keys: map[string]gateway.Key{
		"user": func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil },
	}}
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	b := start(t, setup{policy: quick(), options: gateway.Options{Callers: callers, Cascade: c, Tiers: all}})
	for i, want := range []int{200, 200, 429} {
		if a := b.chat(fmt.Sprint(i), "X-User", "ann"); a.StatusCode != want {
			t.Errorf("call %d of ann: %d, want %d: %s", i, a.StatusCode, want, a.body)
		} else if want == 429 {
			b.wants(a, proxy.RefusedHeader, "rate_limited")
			if a.Header.Get("Retry-After") == "" || !strings.Contains(a.body, `"error":{`) || !strings.Contains(a.body, "user") {
				t.Errorf("the refusal is %v %s", a.Header, a.body)
			}
		}
	}
	if a := b.chat("hi", "X-User", "bob"); a.StatusCode != 200 {
		t.Errorf("bob: %d", a.StatusCode)
	}
}

func TestBadRequestsAreToldSo(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all}, sim: llmsim.Config{Models: map[string]llmsim.Model{"gpt-4o": {}}}})
	for _, body := range []string{``, `{`, `[]`, `"x"`, `{"model":[]}`, `{"model":7}`, "\xff", `{"model":"gpt-4o"} x`} {
		a := b.post(completions, body)
		if a.StatusCode != 400 || !json.Valid([]byte(a.body)) || !strings.Contains(a.body, `"error":{`) {
			t.Errorf("%q: %d %s", body, a.StatusCode, a.body)
		}
	}
	b = start(t, setup{policy: quick(), sim: llmsim.Config{Models: map[string]llmsim.Model{"gpt-4o": {}}}})
	a := b.post(completions, `{"model":"no-such","messages":[{"role":"user","content":"hi"}]}`)
	if a.StatusCode != 404 || !strings.Contains(a.body, "no-such") {
		t.Errorf("an unknown model: %d %s", a.StatusCode, a.body)
	}
}

func TestKeysArePutInPlace(t *testing.T) {
	for _, c := range []struct {
		family llm.Family
		path   string
		body   string
		header []string
	}{
		{llm.OpenAI, completions, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, nil},
		{llm.Anthropic, "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, []string{"Anthropic-Version", "2023-06-01"}},
		{llm.Gemini, "/v1beta/models/m:generateContent?key=of-caller", `{"contents":[{"parts":[{"text":"hi"}]}]}`, nil},
	} {
		b := start(t, setup{
			policy: quick(), options: gateway.Options{Family: c.family, Key: "of-weir", Prices: price.BuiltIn()},
			sim: llmsim.Config{Keys: map[string]llmsim.Key{"of-weir": {Name: "weir"}}},
		})
		if a := b.post(c.path, c.body, c.header...); a.StatusCode != 200 {
			t.Errorf("%s: %d %s", c.family, a.StatusCode, a.body)
		}
		for _, v := range b.sim.Violations() {
			t.Error(v)
		}
	}
}

func TestACallerWhoLeavesIsToldUpstream(t *testing.T) {
	b := start(t, setup{policy: quick()})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.NeverEnding})
	r, _ := http.NewRequest(http.MethodPost, b.weir.URL+"/chat"+completions, bytes.NewReader([]byte(`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)))
	r.Header.Set("Authorization", "Bearer sk-test")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	b.over()
}

// A request without a model is forwarded as it is, or with the configured model. Both are counted.
func TestRequestsThatNameNoModel(t *testing.T) {
	for _, model := range []string{"", "llama"} {
		p := provider(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":50,"completion_tokens":50,"total_tokens":100}}`)
		})
		policy := quick()
		policy.MaxWait = -1
		policy.Limits = []limit.Limit{{Name: "one", Scope: gateway.Model, Rate: bucket.Rate{Amount: 2, Per: time.Hour, Burst: 2}}}
		b := before(t, gateway.Options{Model: model}, policy, p.url())
		for i, body := range []string{`{"messages":[{"role":"user","content":"hi"}]}`, `{"prompt":"a","input":"b","stream":false,"model":null}`, `{"messages":[]}`} {
			if a, want := b.post(completions, body), []int{200, 200, 429}[i]; a.StatusCode != want {
				t.Errorf("%q, %s: answered %s, want %d: %s", model, body, a.Status, want, a.body)
			}
		}
		_, sent := p.requests()
		for i, body := range sent {
			if strings.Contains(body, `"model":"llama"`) != (model != "") || i == 0 && model == "" && body != `{"messages":[{"role":"user","content":"hi"}]}` {
				t.Errorf("%q: sent %s", model, body)
			}
		}
	}
}
