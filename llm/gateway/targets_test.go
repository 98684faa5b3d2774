package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A channel is a sidecar without network connections, so that it runs in virtual time: the dialect, the policy, and a
// simulated provider.
type channel struct {
	testing.TB
	sim       *llmsim.Provider
	upstream  *weir.Upstream
	dialect   *gateway.Dialect
	transport *httpx.Transport
}

// exchangeKey is the context key for the exchange of an attempt.
type exchangeKey struct{}

func exchangeOf(r *http.Request) httpx.Exchange {
	return r.Context().Value(exchangeKey{}).(httpx.Exchange)
}

func dig(t testing.TB, sim llmsim.Config, p weir.Policy, o gateway.Options) *channel {
	t.Helper()
	c := &channel{TB: t, sim: llmsim.New(sim)}
	var err error
	if c.upstream, err = weir.New("chat", p, weir.Options{}); err != nil {
		t.Fatal(err)
	}
	o.Name, o.Tokens = "chat", new(tokens.Estimator)
	if c.dialect, err = gateway.New(o); err != nil {
		t.Fatal(err)
	}
	c.transport = &httpx.Transport{
		Upstream: c.upstream, Base: provided(func(r *http.Request) (*http.Response, error) {
			out := r.Clone(r.Context())
			if err := exchangeOf(r).Attempt(out); err != nil {
				return nil, err
			}
			return c.meet(out)
		}),
		Call: func(r *http.Request) (call weir.Call) {
			exchangeOf(r).Describe(&call)
			return call
		},
		Judge: func(resp *http.Response, o outcome.Outcome) outcome.Outcome {
			return exchangeOf(resp.Request).Answered(resp, o)
		},
	}
	return c
}

type provided func(*http.Request) (*http.Response, error)

func (f provided) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// meet lets the provider answer a request.
func (c *channel) meet(r *http.Request) (resp *http.Response, err error) {
	defer func() {
		if recover() == http.ErrAbortHandler {
			resp, err = nil, io.ErrUnexpectedEOF
		}
	}()
	w := httptest.NewRecorder()
	if c.sim.ServeHTTP(w, r); r.Context().Err() != nil {
		return nil, context.Cause(r.Context())
	}
	resp = w.Result()
	resp.Request = r
	return resp, nil
}

// ask sends a request as the sidecar does, and reads the response.
func (c *channel) ask(ctx context.Context, body string, header ...string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://model"+completions, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer sk-test")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	x, f := c.dialect.Hear(r, r.URL.Path)
	if f != nil {
		return answer{}, f
	}
	resp, err := x.(httpx.Conductor).Conduct(r, func(ctx context.Context, to httpx.Request) (*http.Response, weir.Trace, error) {
		out, x := r, x
		if to.Path != "" {
			out, _ = http.NewRequest(http.MethodPost, "http://model"+to.Path+"?"+to.Query, bytes.NewReader(to.Body))
			out.Header = to.Header
			if x, f = c.dialect.Hear(out, to.Path); f != nil {
				return nil, weir.Trace{}, f
			}
		}
		var trace weir.Trace
		ctx = context.WithValue(httpx.WithTrace(ctx, &trace), exchangeKey{}, x)
		resp, err := c.transport.RoundTrip(out.WithContext(ctx))
		return resp, trace, err
	})
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{Response: resp, body: string(text), err: err}, err
}

func prompt(model, text string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, model, text)
}

// preset returns the policy of an upstream in a configuration file.
func preset(t testing.TB, lines string) weir.Policy {
	t.Helper()
	file, err := config.Parse("weir.yaml", []byte("upstreams:\n  chat:\n    url: http://127.0.0.1:1\n    "+strings.ReplaceAll(lines, "\n", "\n    ")), nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Upstreams[0].Policy
}

// Sixty callers start at the same time, each with one SDK attempt and 30 s. All get an answer. The provider, which
// allows 20/s with a burst of 5, refuses no call.
func TestSixtyCallersAreAllAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := llmsim.Model{FirstToken: 300 * time.Millisecond, Limits: llmsim.Limits{Requests: llmsim.Rate{N: 20, Per: time.Second, Burst: 5}}}
		p := preset(t, "preset: openai\nlimits: {rpm: {rate: 20/s, burst: 5}}")
		c := dig(t, llmsim.Config{Default: model}, p, gateway.Options{})
		begun := time.Now()
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				if a, err := c.ask(ctx, prompt("gpt-4o", fmt.Sprint("caller ", i))); err != nil || a.StatusCode != http.StatusOK {
					t.Errorf("caller %d: %v %v", i, a.Response, err)
				}
			})
		}
		wg.Wait()
		if n := c.sim.Refused(); n != 0 {
			t.Errorf("the provider refused %d", n)
		}
		if took := time.Since(begun); took > 4*time.Second {
			t.Errorf("it took %v, want the 2.75s that the limit asks for and an answer's 0.3s", took)
		}
	})
}

// A parcel is a call of the token test, with its size and the error of its estimate.
type parcel struct {
	tokens int
	factor float64 // tokens used per estimated token
}

// Calls of 500 to 8,000 tokens stay within 100,000 tokens a minute, although their estimates are wrong by a factor of up
// to two in both directions. No window exceeds the limit by more than the calls in flight used beyond their
// reservations. The rule is Plain: input and output count. A bucket with the presets' burst of half a minute and a
// rolling minute are both used to at least 90%. A bucket compensates for debts later. A rolling minute counts usage in
// the minute in which it occurred, so each of several minutes has its own.
func TestTokensStayInTheirLimit(t *testing.T) {
	bucketed := limit.Limit{Name: "tpm", Unit: "tokens", Scope: gateway.Pool, Rate: bucket.Rate{Amount: 100_000, Per: time.Minute, Burst: 50_000}}
	rolling := bucketed
	rolling.Shape, rolling.Burst = limit.Rolling, 0
	t.Run("bucket", func(t *testing.T) { parcels(t, bucketed, 0.9) })
	t.Run("rolling", func(t *testing.T) { parcels(t, rolling, 0.9) })
}

// parcels sends more calls than a limit allows and checks the usage. least is the minimum share of the limit that must
// be used.
func parcels(t *testing.T, l limit.Limit, least float64) {
	const minutes = 8
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		random := rand.New(rand.NewPCG(seed, 0))
		sim := llmsim.Config{
			Default: llmsim.Model{FirstToken: 4 * time.Second},
			Answer: func(q llmsim.Question) llmsim.Reply {
				var input int64
				_, _ = fmt.Sscan(q.Text, &input)
				return llmsim.Reply{Text: "yes", Input: input, Output: 5}
			},
		}
		p := preset(t, "preset: openai-compatible\nmax_wait: 10m")
		p.Fair.By = gateway.Credential
		p.Limits = []limit.Limit{l}
		c := dig(t, sim, p, gateway.Options{})
		begun := time.Now()
		var mu sync.Mutex
		debts := make(map[int64]int64) // usage beyond the estimate, by tokens used
		next := func() parcel {
			mu.Lock()
			defer mu.Unlock()
			return parcel{500 + random.IntN(7501), math.Exp2(2*random.Float64() - 1)}
		}
		var wg sync.WaitGroup
		for range 24 { // always more than the limit allows
			wg.Go(func() {
				for time.Since(begun) < minutes*time.Minute {
					n := next()
					used := int64(float64(n.tokens)*n.factor) + 5
					text := fmt.Sprint(used-5, strings.Repeat(" w", max(0, n.tokens-20)))
					a, err := c.ask(t.Context(), fmt.Sprintf(`{"model":"house","max_tokens":5,"messages":[{"role":"user","content":%q}]}`, text))
					if err != nil {
						t.Errorf("seed %d: a call of %d tokens: %v", seed, n.tokens, err)
						return
					}
					estimate, _ := strconv.ParseInt(a.Header.Get(gateway.EstimateHeader), 10, 64)
					mu.Lock()
					debts[used] = max(debts[used], used-estimate)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		var all []llmsim.Attempt
		var total, off int64
		for _, a := range c.sim.Log() {
			if a.Granted && a.Outcome == llmsim.Answered {
				all = append(all, a)
				if off = max(off, debts[a.Input+a.Output]); a.GrantedAt >= time.Minute && a.GrantedAt < minutes*time.Minute {
					total += a.Input + a.Output
				}
			}
		}
		debt := inFlight(all, debts)
		for _, w := range []time.Duration{10 * time.Second, time.Minute, 4 * time.Minute} {
			allowed := l.Burst + int64(w/time.Second)*l.Amount/60
			debt := debt
			if l.Shape == limit.Rolling {
				minutes := int64((w + time.Minute - 1) / time.Minute)
				allowed, debt = minutes*l.Amount, minutes*debt
			}
			most := c.sim.Busiest(w, nil).Used
			t.Logf("%v: %d tokens at most, of %d and a debt of %d", w, most, allowed, debt)
			if most > allowed+debt {
				t.Errorf("seed %d: %d tokens in %v, want at most %d and a debt of %d", seed, most, w, allowed, debt)
			}
		}
		used := float64(total) / float64(l.Amount*(minutes-1))
		t.Logf("%d calls, off by up to %d tokens; %.1f%% used", len(all), off, 100*used)
		if used < least {
			t.Errorf("seed %d: %.1f%% of the limit was used, want %.0f%% at least", seed, 100*used, 100*least)
		}
	})
}

// inFlight returns the maximum of the usage beyond the estimates of calls that run at the same time.
func inFlight(all []llmsim.Attempt, debts map[int64]int64) (most int64) {
	for _, now := range all {
		var sum int64
		for _, a := range all {
			if a.GrantedAt <= now.GrantedAt && now.GrantedAt <= a.End {
				sum += max(0, debts[a.Input+a.Output])
			}
		}
		most = max(most, sum)
	}
	return most
}

// fallback returns a cascade of a second model and a message, with the defaults of a configuration file.
func fallback(t testing.TB) gateway.Options {
	t.Helper()
	made, err := cascade.New(cascade.Config{Deadline: 30 * time.Second, Tiers: []cascade.TierConfig{
		{Name: "primary", Confidence: 1}, {Name: "secondary", Confidence: 0.9}, {Name: "message", Confidence: 0.1, Instant: true},
	}}, cascade.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return gateway.Options{Cascade: made, Tiers: []gateway.Tier{{}, {Model: "gpt-4o-mini"}, {Messages: []string{"We are sorry."}}}}
}

// cascading adds a cascade to a preset.
const cascading = "\nllm: {cascade: {tiers: [{model: gpt-4o-mini}, {message: We are sorry.}]}}"

// The primary is down and its breaker is open, so the next tier answers immediately. In virtual time, computing takes no
// time, so this measures only waits. BenchmarkDegraded measures the rest.
func TestADegradedAnswerWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := dig(t, llmsim.Config{}, preset(t, "preset: openai"), fallback(t))
		c.sim.Fault(llmsim.Fault{Kind: llmsim.Error, Model: "gpt-4o", Status: 503, Times: -1})
		open := func(b breaker.View) bool { return b.Phase == breaker.Open }
		for range 20 { // bypasses the cascade, which sends only a few calls to a tier that is down
			_, _ = weir.Do(t.Context(), c.upstream, weir.Call{Keys: map[string]string{"model": "gpt-4o"}}, func(context.Context) (int, error) {
				return 0, errors.New("down")
			})
		}
		if !slices.ContainsFunc(c.upstream.Look(10).Breakers, open) {
			t.Fatalf("no breaker is open: %+v", c.upstream.Look(10).Breakers)
		}
		before := len(c.sim.Log())
		begun := time.Now()
		a, err := c.ask(t.Context(), prompt("gpt-4o", "hi"))
		if err != nil || a.Header.Get(gateway.TierHeader) != "secondary" || a.Header.Get(gateway.DegradedHeader) != "true" {
			t.Fatalf("%v %v", a.Response, err)
		}
		if took := time.Since(begun); took > 50*time.Millisecond {
			t.Errorf("the first degraded answer took %v, want at most 50ms", took)
		}
		if n := len(c.sim.Log()) - before; n != 1 {
			t.Errorf("%d attempts were made, want the secondary's only", n)
		}
	})
}

// With all models down, all of 100 calls in 10 s get an answer and only a few attempts are sent.
func TestWithEverythingDownFewAttemptsAreMade(t *testing.T) {
	const fewer = "preset: openai\nretry: {attempts: 2, base: 200ms, cap: 2s}" // as in examples/chat
	for _, p := range []string{"preset: openai", "preset: openai-compatible", "preset: anthropic", fewer} {
		for _, f := range []llmsim.Fault{
			{Kind: llmsim.Error, Status: 500}, {Kind: llmsim.Error, Status: 503}, {Kind: llmsim.Error, Status: 529},
			{Kind: llmsim.Drop}, {Kind: llmsim.EmptyBody}, {Kind: llmsim.Throttle, NoHint: true},
			{Kind: llmsim.Throttle, Hint: 2 * time.Second}, {Kind: llmsim.Broke},
		} {
			t.Run(fmt.Sprint(p, " ", f.Kind, " ", f.Status, " ", f.Hint), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := dig(t, llmsim.Config{}, preset(t, p+cascading), fallback(t))
					f.Times = -1
					c.sim.Fault(f)
					var wg sync.WaitGroup
					for range 100 {
						wg.Go(func() {
							a, err := c.ask(t.Context(), prompt("gpt-4o", "hi"))
							if err != nil || a.StatusCode != http.StatusOK || a.Header.Get(gateway.TierHeader) != "message" || !json.Valid([]byte(a.body)) {
								t.Errorf("%v %q %v", a.Response, a.body, err)
							}
						})
						<-time.After(100 * time.Millisecond)
					}
					n := c.sim.Count(func(a llmsim.Attempt) bool { return a.At < 10*time.Second })
					wg.Wait()
					t.Logf("%d attempts in 10s", n)
					most := 30
					if f.NoHint && p != fewer {
						// The upstream is not down, but refuses without a retry time. A call with long waits between
						// attempts reports its failure only at its end.
						most = 40
					}
					if n > most {
						t.Errorf("%d attempts were made in 10s, want at most %d", n, most)
					}
				})
			})
		}
	}
}

// Two users share a limit, and one sends 50 times as much as the other. The other user's latency at most doubles.
func TestAFloodSlowsNobodyElse(t *testing.T) {
	for _, limits := range []string{
		"rpm: {rate: 20/s, burst: 5, scope: pool}",
		"tpm: {rate: 60000/min, burst: 2000, unit: tokens, scope: pool}",
	} {
		alone, beside := quiet(t, limits, 0), quiet(t, limits, 50)
		t.Logf("%s: p99 %v alone, %v beside a flood", limits, alone, beside)
		if beside > 2*alone {
			t.Errorf("%s: the p99 of one user is %v beside a flood of another, want at most twice the %v of it alone", limits, beside, alone)
		}
	}
}

// quiet returns the p99 latency of a user who sends two calls per second while another user sends times as many.
func quiet(t *testing.T, limits string, times int) (p99 time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		p := preset(t, "preset: openai-compatible\nkeys: {user: \"header:X-User\"}\nlimits: {"+limits+"}\nfair: user")
		callers, err := weir.New("callers", weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1e6, Per: time.Second}}}}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		o := gateway.Options{Callers: &gateway.Callers{Limits: callers, Keys: map[string]gateway.Key{
			"user": func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil },
		}}}
		c := dig(t, llmsim.Config{Default: llmsim.Model{FirstToken: 300 * time.Millisecond, OutputTokens: 40}}, p, o)
		body := `{"model":"house","max_tokens":40,"messages":[{"role":"user","content":"hi"}]}`
		var mu sync.Mutex
		var took []time.Duration
		var wg sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		send := func(user string, n int, every time.Duration, done func(time.Duration, error)) {
			for range n {
				wg.Go(func() {
					begun := time.Now()
					_, err := c.ask(ctx, body, "X-User", user)
					done(time.Since(begun), err)
				})
				<-time.After(every)
			}
		}
		if times > 0 {
			wg.Go(func() {
				send("flood", 30*2*times, 500*time.Millisecond/time.Duration(times), func(time.Duration, error) {})
			})
		}
		send("quiet", 60, 500*time.Millisecond, func(d time.Duration, err error) {
			mu.Lock()
			defer mu.Unlock()
			if took = append(took, d); err != nil {
				t.Errorf("the quiet user: %v", err)
			}
		})
		<-time.After(5 * time.Second)
		mu.Lock()
		slices.Sort(took)
		if p99 = took[len(took)*99/100]; len(took) < 60 {
			t.Errorf("%d of the quiet user's calls were answered", len(took))
		}
		mu.Unlock()
		cancel()
		wg.Wait()
	})
	return p99
}
