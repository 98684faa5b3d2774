package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// The attempt at a hanging model ends early enough that another model can answer before the caller disconnects. The
// caller does not state its timeout, which is 30 s as in many programs.
func TestAModelThatHangsIsGivenUpInTime(t *testing.T) {
	const second, none = "llm: {cascade: {tiers: [{model: gpt-4o-mini}, {message: We are sorry.}]}}", "llm: {cascade: {tiers: [{message: We are sorry.}]}}"
	for _, tt := range []struct {
		name, lines string
		where       llmsim.Where
		stream      bool
		warm        int // previous calls, from which weir knows how long answers take
		header      string
		tier        string
		most        time.Duration
	}{
		{"nothing is known", second, llmsim.BeforeHeaders, false, 0, "", "secondary", 21 * time.Second},
		{"nothing is known, a stream", second, llmsim.BeforeHeaders, true, 0, "", "secondary", 21 * time.Second},
		{"a stream without content", second, llmsim.AfterHeaders, true, 0, "", "secondary", 21 * time.Second},
		{"medians are known", second, llmsim.BeforeHeaders, false, 20, "", "secondary", 21 * time.Second},
		{"medians are known, a stream without content", second, llmsim.AfterHeaders, true, 20, "", "secondary", 21 * time.Second},
		{"no other model", none, llmsim.AfterHeaders, true, 20, "", "primary", 21 * time.Second},
		{"no other model, nothing is known", none, llmsim.BeforeHeaders, true, 0, "", "primary", 21 * time.Second},
		{"the SDK's own ten minutes", second, llmsim.BeforeHeaders, true, 5, "X-Stainless-Read-Timeout=600", "secondary", 21 * time.Second},
		{"who says less", second, llmsim.BeforeHeaders, false, 5, "X-Stainless-Timeout=8", "secondary", 8 * time.Second},
		{"who says more", second, llmsim.BeforeHeaders, false, 5, "X-Weir-Timeout=40s", "secondary", 41 * time.Second},
		{"no cascade, but who says it", "", llmsim.BeforeHeaders, false, 5, "X-Stainless-Timeout=12", "primary", 12 * time.Second},
		{"no cascade, a patience", "llm: {patience: 15s}", llmsim.AfterHeaders, true, 0, "", "primary", 15 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, o := shipped(t, strings.TrimSuffix("preset: openai, "+tt.lines, ", "))
				c := dig(t, llmsim.Config{Default: llmsim.Model{FirstToken: 300 * time.Millisecond}}, p, o)
				body := prompt("gpt-4o", "hi")
				if tt.stream {
					body = streamed
				}
				for range tt.warm {
					if a, err := c.ask(t.Context(), body); err != nil || a.StatusCode != http.StatusOK {
						t.Fatalf("%v %v", a.Response, err)
					}
				}
				f := llmsim.Fault{Kind: llmsim.Hang, Where: tt.where, Model: "gpt-4o"}
				if tt.tier != "primary" {
					f.Times = -1
				}
				c.sim.Fault(f)
				begun := time.Now()
				name, value, _ := strings.Cut(tt.header, "=")
				var header []string
				if name != "" {
					header = []string{name, value}
				}
				a, err := c.ask(t.Context(), body, header...)
				took := time.Since(begun)
				if err != nil || a.StatusCode != http.StatusOK {
					t.Fatalf("after %v: %v %v", took, a.Response, err)
				}
				t.Logf("%s after %v", a.Header.Get(gateway.TierHeader), took)
				if a.Header.Get(gateway.TierHeader) != tt.tier || took > tt.most {
					t.Errorf("%s after %v, want %s within %v", a.Header.Get(gateway.TierHeader), took, tt.tier, tt.most)
				}
			})
		})
	}
}

// A call whose time ends in weir's queue gets a 429 with a retry time, not an upstream timeout.
func TestPatienceThatEndsInWeirsQueueIsARefusal(t *testing.T) {
	for _, lines := range []string{
		"preset: openai, limits: {rpm: {rate: 20/min, burst: 1}}",
		"preset: openai, limits: {rpm: off, tpm: {rate: 1000/min, burst: 100, unit: tokens}}",
		"preset: anthropic, limits: {rpm: off, itpm: off, otpm: off}, concurrency: 1",
		"preset: openai, concurrency: 1, fair: off",
		"preset: gemini, limits: {rpm: {rate: 6/min, shape: rolling}}",
	} {
		t.Run(lines, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, o := shipped(t, lines)
				c := dig(t, llmsim.Config{Default: llmsim.Model{FirstToken: 1700 * time.Millisecond}}, p, o)
				var wg sync.WaitGroup
				var mu sync.Mutex
				refused, answered, late := 0, 0, 0
				for i := range 60 {
					wg.Go(func() {
						wait := fmt.Sprintf("%.3f", 3+float64(i)/10)
						a, err := c.ask(t.Context(), prompt("gpt-4o", fmt.Sprint(i)), gateway.TimeoutHeader, wait, "X-User", fmt.Sprint(i%7))
						mu.Lock()
						defer mu.Unlock()
						r, no := errors.AsType[*weir.Refusal](err)
						switch {
						case no && r.RetryAfter > 0:
							refused++
						case err == nil && a.StatusCode == http.StatusOK:
							answered++
						case errors.Is(err, context.DeadlineExceeded):
							late++
						default:
							t.Errorf("call %d: %v %v", i, a.Response, err)
						}
					})
				}
				wg.Wait()
				t.Logf("%d answered, %d refused", answered, refused)
				if n := len(c.sim.Log()); n != answered+late {
					t.Errorf("%d calls were sent, %d answered, %d too late", n, answered, late)
				}
				if refused == 0 || answered == 0 {
					t.Errorf("%d answered, %d refused", answered, refused)
				}
			})
		})
	}
}

// A stream that starts with headers but no content is held back for its tier's entire time, so that another model can
// answer instead.
func TestASilentStreamIsHeldBackWhileAnotherCanAnswer(t *testing.T) {
	const role = `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant"}}]}` + "\n\n"
	for _, tiers := range []string{"{model: gpt-4o-mini}, {message: We are sorry.}", "{message: We are sorry.}"} {
		synctest.Test(t, func(t *testing.T) {
			p, o := shipped(t, "preset: openai, retry: {attempts: 1}, llm: {cascade: {tiers: ["+tiers+"]}}") // the time of one attempt
			c := dig(t, llmsim.Config{}, p, o)
			well := c.transport.Base
			silent := false
			c.transport.Base = provided(func(r *http.Request) (*http.Response, error) {
				body, _ := io.ReadAll(r.Body)
				r = r.Clone(r.Context())
				r.Body = io.NopCloser(bytes.NewReader(body))
				if !silent || bytes.Contains(body, []byte("mini")) {
					return well.RoundTrip(r)
				}
				if err := exchangeOf(r).Attempt(r); err != nil {
					return nil, err
				}
				return &http.Response{Status: "200 OK", StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: &halting{r, role, 0}, Request: r, ContentLength: -1}, nil
			})
			for _, model := range []string{"gpt-4o", "gpt-4o-mini"} {
				for range 5 {
					if a, err := c.ask(t.Context(), strings.Replace(streamed, "gpt-4o", model, 1)); err != nil || a.StatusCode != http.StatusOK {
						t.Fatalf("%v %v", a.Response, err)
					}
				}
			}
			silent = true
			begun := time.Now()
			a, err := c.ask(t.Context(), streamed)
			took := time.Since(begun)
			if err != nil || a.Header.Get(gateway.TierHeader) == "primary" || took > 20*time.Second {
				t.Errorf("%s: after %v: %v %q %v", tiers, took, a.Response, a.body, err)
			} else {
				t.Logf("%s after %v", a.Header.Get(gateway.TierHeader), took)
			}
		})
	}
}
