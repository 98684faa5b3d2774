package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A speaker sends requests in the format of a family.
type speaker struct {
	family llm.Family
	path   string // %s is the model
	body   string // %s is the model, if present
	key    string // the header with the API key
}

var speakers = []speaker{
	{llm.OpenAI, completions, `{"model":"%s","messages":[{"role":"user","content":"hi"}]}`, "Authorization"},
	{llm.Responses, "/v1/responses", `{"model":"%s","input":"hi"}`, "Authorization"},
	{llm.Anthropic, "/v1/messages", `{"model":"%s","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, "X-Api-Key"},
	{llm.Gemini, "/v1beta/models/%s:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, "X-Goog-Api-Key"},
	{llm.Converse, "/model/%s/converse", `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`, "Authorization"},
}

func (s speaker) ask(b *bench, model, key string) answer {
	b.Helper()
	fill := func(text string) string { return strings.Replace(text, "%s", model, 1) }
	if s.key == "Authorization" {
		key = "Bearer " + key
	}
	header := []string{s.key, key, "Anthropic-Version", "2023-06-01"}
	if s.key != "Authorization" {
		header = append(header, "Authorization", "")
	}
	return b.post(fill(s.path), fill(s.body), header...)
}

func perSecond(name, scope string) limit.Limit {
	return limit.Limit{Name: name, Scope: scope, Rate: bucket.Rate{Amount: 1000, Per: time.Second, Burst: 1000}}
}

// For all configured limits, a hint applies only to the key and the model for which it was given.
func TestAHintHoldsTheKeyAndTheModelAlone(t *testing.T) {
	for _, limits := range [][]limit.Limit{nil, {perSecond("all", "")}, {perSecond("rpm", "pool")}, {perSecond("all", ""), perSecond("rpm", "pool"), perSecond("user", "user")}} {
		for _, s := range speakers[:4] { // Bedrock gives no hints
			t.Run(fmt.Sprint(s.family, len(limits)), func(t *testing.T) {
				p := quick()
				p.Limits, p.MaxWait = limits, -1
				b := start(t, setup{policy: p})
				b.sim.Fault(llmsim.Fault{Kind: llmsim.Throttle, Hint: 30 * time.Second})
				first := s.ask(b, "one", "a")
				if first.StatusCode != 429 || first.Header.Get(proxy.RefusedHeader) != "" {
					t.Fatalf("the first call: %d %s", first.StatusCode, first.body)
				}
				for _, c := range []struct {
					model, key string
					held       bool
				}{{"one", "a", true}, {"two", "a", false}, {"one", "b", false}, {"one", "a", true}} {
					a := s.ask(b, c.model, c.key)
					if held := a.Header.Get(proxy.RefusedHeader) == "paused"; held != c.held || !held && a.StatusCode != 200 {
						t.Errorf("model %s and key %s: %d, held %v, want %v", c.model, c.key, a.StatusCode, held, c.held)
					}
					if got := a.Header.Get("RateLimit"); c.held && !strings.HasPrefix(got, `"upstream";r=0;t=`) {
						t.Errorf("RateLimit is %q", got)
					}
					if wait, _ := strconv.Atoi(a.Header.Get("Retry-After")); c.held && (wait < 20 || wait > 34) {
						t.Errorf("it is told to wait for %d s, want what is left of 30 s and a little", wait)
					}
				}
				if n := len(b.sim.Log()); n != 3 {
					t.Errorf("%d attempts came to the provider, want 3", n)
				}
			})
		}
	}
}

func TestARetryWaitsAtLeastTheHintAndSoDoOthers(t *testing.T) {
	const hint = 300 * time.Millisecond
	for _, s := range speakers[:4] {
		for _, attempts := range []int{1, 2} {
			t.Run(fmt.Sprint(s.family, attempts), func(t *testing.T) {
				t.Parallel()
				p := quick()
				p.Retry.Attempts, p.MaxWait = attempts, time.Minute
				b := start(t, setup{policy: p})
				b.sim.Fault(llmsim.Fault{Kind: llmsim.Throttle, Hint: hint})
				a := s.ask(b, "one", "a")
				if attempts == 2 && (a.StatusCode != 200 || a.Header.Get(proxy.AttemptsHeader) != "2") {
					t.Errorf("%d %s", a.StatusCode, a.body)
				}
				var wg sync.WaitGroup
				for range 5 {
					wg.Go(func() { s.ask(b, "one", "a") })
				}
				wg.Wait()
				log := b.sim.Log()
				for _, at := range log[1:] {
					if gap := at.At - log[0].At; gap < hint || at.Outcome != llmsim.Answered {
						t.Errorf("an attempt came %v after a hint of %v: %s", gap, hint, at.Outcome)
					}
				}
				if len(log) != 5+attempts {
					t.Errorf("%d attempts, want %d", len(log), 5+attempts)
				}
			})
		}
	}
}

// A provider is not called again before its daily quota resets, or only occasionally if the reset time is unknown.
func TestADailyQuotaIsNotAskedAgain(t *testing.T) {
	for _, s := range speakers {
		t.Run(string(s.family), func(t *testing.T) {
			p := quick()
			p.Retry.Attempts, p.MaxWait = 3, -1
			b := start(t, setup{policy: p})
			b.sim.Fault(llmsim.Fault{Kind: llmsim.Throttle, Day: true, Hint: 5 * time.Hour})
			a := s.ask(b, "one", "a")
			if n := len(b.sim.Log()); a.StatusCode != 429 || n != 1 || a.Header.Get(proxy.GaveUpHeader) == "" || a.Header.Get("X-Should-Retry") != "false" {
				t.Errorf("%d attempts, %d %v", n, a.StatusCode, a.Header)
			}
			a = s.ask(b, "one", "a")
			b.wants(a, proxy.RefusedHeader, "quota_exhausted")
			if n := len(b.sim.Log()); n != 1 || !strings.Contains(a.body, "quota_exhausted") {
				t.Errorf("%d attempts, and the refusal is %s", n, a.body)
			}
			wait, _ := strconv.Atoi(a.Header.Get("Retry-After"))
			switch s.family {
			case llm.Converse: // does not report the time
				if wait < 800 || wait > 910 || strings.Contains(a.body, "resets at") {
					t.Errorf("it is told to wait for %d s: %s", wait, a.body)
				}
			case llm.Gemini: // until midnight in California
				if wait < 1 || wait > 25*3600+10 || !strings.Contains(a.body, "resets at") {
					t.Errorf("it is told to wait for %d s: %s", wait, a.body)
				}
			default:
				if wait < 17_900 || wait > 18_010 || !strings.Contains(a.body, "resets at") {
					t.Errorf("it is told to wait for %d s: %s", wait, a.body)
				}
			}
			if a := s.ask(b, "two", "a"); a.StatusCode != 200 {
				t.Errorf("another model: %d %s", a.StatusCode, a.body)
			}
		})
	}
}

func TestATierWhoseQuotaIsSpentIsOpenUntilItsReset(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	p := quick()
	p.Retry.Attempts = 3
	b := start(t, setup{policy: p, options: gateway.Options{Key: "of-weir", Cascade: c, Tiers: all}})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.Throttle, Day: true, Hint: 5 * time.Hour})
	for range 3 {
		b.wants(b.chat("hi"), gateway.TierHeader, "tier1")
	}
	if n := len(b.sim.Log()); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
	v := c.View()[0]
	if v.Phase != breaker.Open || v.Why != breaker.QuotaSpent || v.For < 4*time.Hour || v.For > 5*time.Hour {
		t.Errorf("the tier is %+v", v)
	}
}

// A caller's own key is used up: calls with other keys continue.
func TestAQuotaOfACallersOwnKeyClosesNobodyElsesTier(t *testing.T) {
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all}})
	b.sim.Fault(llmsim.Fault{Kind: llmsim.Throttle, Day: true, Hint: 5 * time.Hour})
	for range 10 {
		b.wants(b.chat("hi"), gateway.TierHeader, "tier1")
	}
	b.wants(b.chat("hi", "Authorization", "Bearer sk-other"), gateway.TierHeader, "primary")
	if n := len(b.sim.Log()); n != 2 {
		t.Errorf("%d attempts, want one of each key", n)
	}
}

func TestWhatIsOutOfMoneyIsAskedOnce(t *testing.T) {
	p := quick()
	p.Retry.Attempts, p.MaxWait = 3, -1
	b := start(t, setup{policy: p})
	for i := range 2 { // the next call is not delayed, because the account may get credit at any time
		b.sim.Fault(llmsim.Fault{Kind: llmsim.Broke})
		a := b.chat("hi")
		if n := len(b.sim.Log()); n != i+1 || a.StatusCode != 429 || !strings.Contains(a.body, `"insufficient_quota"`) {
			t.Errorf("call %d: %d attempts, %d %s", i, n, a.StatusCode, a.body)
		}
		b.wants(a, "X-Should-Retry", "false")
	}
}

// A fake is a provider that always sends the same response.
type fake struct {
	*bench
	calls atomic.Int64
}

func newFake(t *testing.T, p weir.Policy, o gateway.Options, status int, header http.Header, body string) *fake {
	t.Helper()
	f := &fake{bench: &bench{T: t}}
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(at.Close)
	o.Name, o.Tokens = "chat", new(tokens.Estimator)
	d, err := gateway.New(o)
	if err != nil {
		t.Fatal(err)
	}
	to, _ := url.Parse(at.URL)
	if f.p, err = proxy.New([]proxy.Upstream{{Name: "chat", URL: to, Policy: p, Dialect: d}, {Name: "plain", URL: to, Policy: p}}, weir.Options{}); err != nil {
		t.Fatal(err)
	}
	f.weir = httptest.NewServer(f.p)
	t.Cleanup(f.weir.Close)
	return f
}

func TestWhoAsksNotToBeAskedAgainIsNot(t *testing.T) {
	for _, status := range []int{429, 500, 503, 529, 408} {
		p := quick()
		p.Retry.Attempts = 3
		f := newFake(t, p, gateway.Options{}, status, http.Header{"X-Should-Retry": {"false"}, "Content-Type": {"application/json"}}, `{"error":{"message":"no"}}`)
		a := f.chat("hi")
		if n := f.calls.Load(); n != 1 || a.StatusCode != status {
			t.Errorf("%d: %d attempts, answered with %d", status, n, a.StatusCode)
		}
		f.wants(a, "X-Should-Retry", "false")
	}
}

// The provider's hints are passed on unchanged when weir gives up.
func TestHintsPassUntouchedWhenWeirGivesUp(t *testing.T) {
	hints := http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "Retry-After": {"7"}, "Retry-After-Ms": {"6543.5"},
		"X-Ratelimit-Limit-Requests": {"500"}, "X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {"6m0s"},
		"X-Ratelimit-Reset-Tokens": {"1h2m3.5s"}, "Anthropic-Ratelimit-Tokens-Remaining": {"0"},
		"Anthropic-Ratelimit-Tokens-Reset": {"2030-01-01T00:00:00Z"}, "Anthropic-Ratelimit-Unified-Reset": {"1893456000"},
		"Ratelimit": {`"burst";r=0;t=7`, `"day";r=5`}, "Ratelimit-Policy": {`"burst";q=5;w=7`}, "X-Request-Id": {"req_1"},
		"X-Amzn-Errortype": {"ThrottlingException:http://internal/"},
	}
	const body = " {\"error\" :{\"message\":\"slow\\u0020down\",\"code\":\"rate_limit_exceeded\"}}\r\n"
	for _, status := range []int{429, 503} {
		for _, attempts := range []int{1, 2} {
			p := quick()
			p.Retry.Attempts, p.Retry.HintSlack, p.MaxWait = attempts, time.Nanosecond, time.Nanosecond
			f := newFake(t, p, gateway.Options{}, status, hints, body)
			a := f.chat("hi")
			if a.StatusCode != status || a.body != body {
				t.Errorf("%d, %q", a.StatusCode, a.body)
			}
			for name, want := range hints {
				if got := a.Header[name]; !reflect.DeepEqual(got, want) {
					t.Errorf("%s is %q, want %q", name, got, want)
				}
			}
			f.wants(a, "X-Should-Retry", "false")
			f.wants(a, proxy.RefusedHeader, "")
			if a.Header.Get(proxy.GaveUpHeader) == "" {
				t.Errorf("weir does not say that it has given up: %v", a.Header)
			}
		}
	}
}

// Hints of a throttled response do not appear on another tier's answer or on weir's own refusal.
func TestHintsOfAProviderAreOnNothingElse(t *testing.T) {
	hints := http.Header{"Content-Type": {"application/json"}, "Retry-After": {"77"}, "X-Ratelimit-Limit-Requests": {"500"}, "Anthropic-Ratelimit-Tokens-Remaining": {"0"}, "X-Request-Id": {"req_1"}}
	c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
	p := quick()
	p.MaxWait = -1
	for _, o := range []gateway.Options{{}, {Cascade: c, Tiers: all}} {
		f := newFake(t, p, o, 429, hints, `{"error":{"code":"rate_limit_exceeded"}}`)
		f.chat("hi")
		a := f.chat("hi")
		for name := range hints {
			if got := a.Header.Get(name); got == hints.Get(name) && name != "Content-Type" {
				t.Errorf("%s is %q on what is not the provider's", name, got)
			}
		}
		if n := f.calls.Load(); n != 1 {
			t.Errorf("%d attempts, want 1", n)
		}
	}
}

// weir's own refusals are errors that the family's SDK recognizes, with all available details.
func TestRefusalsAreInTheWordsOfTheFamily(t *testing.T) {
	type shape struct {
		Type  string
		Error struct {
			Message, Type, Status string
			Code                  any
			Details               []map[string]any
		}
		Message string
	}
	for _, s := range speakers {
		t.Run(string(s.family), func(t *testing.T) {
			p := quick()
			p.MaxWait = -1
			p.Limits = []limit.Limit{
				{Name: "rpm", Scope: "pool", Rate: bucket.Rate{Amount: 1, Per: time.Minute, Burst: 1}},
				{Name: "tpm", Scope: "pool", Unit: "tokens", Rate: bucket.Rate{Amount: 1000, Per: time.Minute, Burst: 100_000}},
			}
			b := start(t, setup{policy: p})
			if a := s.ask(b, "one", "a"); a.StatusCode != 200 {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
			a := s.ask(b, "one", "a")
			b.wants(a, proxy.RefusedHeader, "rate_limited")
			var v shape
			if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.StatusCode != 429 {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
			text := v.Error.Message
			switch s.family {
			case llm.Anthropic:
				if v.Type != "error" || v.Error.Type != "rate_limit_error" {
					t.Errorf("it is %s", a.body)
				}
			case llm.Gemini:
				if v.Error.Status != "RESOURCE_EXHAUSTED" || v.Error.Code != 429.0 || len(v.Error.Details) != 2 {
					t.Errorf("it is %s", a.body)
				}
			case llm.Converse:
				text = v.Message
				if got := a.Header.Get("X-Amzn-Errortype"); !strings.HasPrefix(got, "ThrottlingException") {
					t.Errorf("its type is %q", got)
				}
			default:
				if v.Error.Code != "rate_limit_exceeded" {
					t.Errorf("it is %s", a.body)
				}
			}
			if !strings.Contains(text, "by limit rpm") || !strings.Contains(text, "retry after") {
				t.Errorf("it reads %q", text)
			}
			seconds, _ := strconv.Atoi(a.Header.Get("Retry-After"))
			millis, _ := strconv.Atoi(a.Header.Get("Retry-After-Ms"))
			if seconds < 50 || seconds > 66 || millis <= (seconds-1)*1000 || millis > seconds*1000 {
				t.Errorf("Retry-After %d s and %d ms, want the same, rounded up", seconds, millis)
			}
			levels := a.Header.Get("RateLimit")
			if !strings.HasPrefix(levels, `"rpm";r=0;t=`) || !strings.Contains(levels, `, "tpm";r=`) ||
				a.Header.Get("RateLimit-Policy") != `"rpm";q=1;w=60, "tpm";q=1000;w=60` {
				t.Errorf("RateLimit: %s; RateLimit-Policy: %s", levels, a.Header.Get("RateLimit-Policy"))
			}
			for name := range a.Header {
				if strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-") {
					t.Errorf("%s is a provider's to say", name)
				}
			}
		})
	}
}

// Refused callers get different retry times.
func TestHintsOfWeirsOwnAreSpread(t *testing.T) {
	p := quick()
	p.MaxWait = -1
	p.Limits = []limit.Limit{{Name: "rph", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}}
	b := start(t, setup{policy: p})
	b.chat("hi")
	seen := map[string]bool{}
	for range 10 {
		seen[b.chat("hi").Header.Get("Retry-After-Ms")] = true
	}
	if len(seen) < 5 {
		t.Errorf("ten callers are told %v", seen)
	}
}

// A provider's hint does not pause the limits of callers.
func TestHintsDoNotConcernTheLimitsOfCallers(t *testing.T) {
	limits, err := weir.New("callers", weir.Policy{Limits: []limit.Limit{perSecond("user", "user"), perSecond("all", "")}}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	callers := &gateway.Callers{Limits: limits, Keys: map[string]gateway.Key{
		"user": func(r *http.Request) (string, error) { return "ann", nil },
	}}
	p := quick()
	p.MaxWait = -1
	b := start(t, setup{policy: p, options: gateway.Options{Callers: callers}})
	for _, f := range []llmsim.Fault{{Kind: llmsim.Throttle, Hint: time.Hour}, {Kind: llmsim.Throttle, Day: true, Hint: time.Hour, Model: "other"}} {
		b.sim.Fault(f)
	}
	b.chat("hi")
	b.wants(b.chat("hi"), proxy.RefusedHeader, "paused")
	speakers[0].ask(b, "other", "a")
	for _, v := range limits.Look(10).Limits {
		if v.Level.Paused > 0 {
			t.Errorf("limit %s of key %q is paused for %v", v.Limit.Name, v.Key, v.Level.Paused)
		}
	}
	if len(limits.Look(10).Pauses) > 0 {
		t.Errorf("%+v", limits.Look(10))
	}
	if a := speakers[0].ask(b, "third", "a"); a.StatusCode != 200 {
		t.Errorf("another model: %d %s", a.StatusCode, a.body)
	}
}

// An error inside a stream counts as a hint.
func TestAThrottleInsideAStreamHoldsItsPool(t *testing.T) {
	const event = "data: {\"error\":{\"message\":\"Rate limit reached. Please try again in 30s.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}\n\n"
	p := quick()
	p.MaxWait = -1
	f := newFake(t, p, gateway.Options{}, 200, http.Header{"Content-Type": {"text/event-stream"}}, event)
	f.stream("hi")
	f.wants(f.stream("hi"), proxy.RefusedHeader, "paused")
	if n := f.calls.Load(); n != 1 {
		t.Errorf("%d attempts, want 1", n)
	}
}

// ntfy is not a model, but also has daily quotas.
func TestADayOfNtfyLastsUntilMidnight(t *testing.T) {
	p := quick()
	p.Retry.Attempts, p.MaxWait = 3, -1
	f := newFake(t, p, gateway.Options{}, 429, http.Header{"Content-Type": {"application/json"}}, `{"code":42908,"http":429,"error":"limit reached: daily message quota reached"}`)
	for _, refused := range []string{"", "quota_exhausted"} {
		resp, err := http.Post(f.weir.URL+"/plain/topic", "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if got := resp.Header.Get(proxy.RefusedHeader); got != refused || f.calls.Load() != 1 {
			t.Errorf("refused %q after %d attempts, want %q after 1", got, f.calls.Load(), refused)
		}
		if refused != "" && !strings.Contains(string(text), "T00:00:00Z") {
			t.Errorf("it does not say when the day ends: %s", text)
		}
	}
}

// An inside sends requests to a provider in this process.
type inside struct{ *llmsim.Provider }

func (p inside) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// Two weir processes that do not know of each other share a key with 600 calls per minute. Each has enough callers for
// the entire rate. They adapt to the remaining calls that the provider reports.
func TestTwoWeirsShareAKey(t *testing.T) {
	refused := func(listens bool) (share, used float64) {
		synctest.Test(t, func(t *testing.T) {
			sim := llmsim.New(llmsim.Config{Default: llmsim.Model{FirstToken: 400 * time.Millisecond, OutputTokens: 5, Limits: llmsim.Limits{Requests: llmsim.Rate{N: 600}}}})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			for range 2 {
				p := quick()
				p.MaxWait = time.Minute
				p.Limits = []limit.Limit{{Name: "rpm", Scope: "pool", Advertised: "requests", Rate: bucket.Rate{Amount: 600, Per: time.Minute, Burst: 150}}}
				u, err := weir.New("chat", p, weir.Options{})
				if err != nil {
					t.Error(err)
					return
				}
				tr := httpx.NewTransport(u, inside{sim})
				tr.Call = func(*http.Request) weir.Call { return weir.Call{Keys: map[string]string{"pool": "a"}} }
				tr.Judge = func(_ *http.Response, o outcome.Outcome) outcome.Outcome {
					o.Hint.Said = false // no pauses: the test is about the rate
					if !listens {
						o.Hint.Limits = nil
					}
					return o
				}
				for range 40 {
					wg.Go(func() {
						for ctx.Err() == nil {
							r, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://sim"+completions, strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
							r.Header.Set("Authorization", "Bearer a")
							r.Header.Set("Content-Type", "application/json")
							resp, err := tr.RoundTrip(r)
							if err != nil { // refused: the call would be too late
								return
							}
							_ = resp.Body.Close()
						}
					})
				}
			}
			wg.Wait()
			all := float64(sim.Count(nil))
			share = float64(sim.Refused()) / all
			used = (all - float64(sim.Refused())) / (2*600 + 600)
		})
		return share, used
	}
	deaf, usedDeaf := refused(false)
	listening, used := refused(true)
	t.Logf("%.1f%% of the attempts are refused without listening and %.1f%% with it; used %.0f%% and %.0f%% of the limit", 100*deaf, 100*listening, 100*usedDeaf, 100*used)
	if deaf < 0.3 || listening > deaf/2 || used < 0.9 {
		t.Errorf("refused %.3f and, listening, %.3f, used %.3f; want half of it at most, and 0.9 used", deaf, listening, used)
	}
}
