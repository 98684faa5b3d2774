package gateway_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// Failures, disconnecting callers and configuration reloads leave nothing reserved.
func TestNothingLeaks(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var ours, theirs held
	limits, err := weir.New("callers", weir.Policy{MaxWait: -1}, weir.Options{Gates: []weir.Gate{&ours}})
	if err != nil {
		t.Fatal(err)
	}
	callers := &gateway.Callers{Limits: limits}
	p := quick()
	p.Retry.Attempts = 2
	c, all := tiers(t, gateway.Tier{Model: "gpt-4o-mini"}, gateway.Tier{Cached: true}, gateway.Tier{Messages: []string{"We are sorry."}})
	o := gateway.Options{
		Name: "chat", Tokens: new(tokens.Estimator), Prices: price.BuiltIn(), Callers: callers, Cascade: c, Tiers: all,
		Cache: newCache(t, cache.Options{TTL: time.Nanosecond}), Hold: 5 * time.Millisecond, FirstContent: 30 * time.Millisecond, Idle: 30 * time.Millisecond,
	}
	b := start(t, setup{policy: p, options: o, weir: weir.Options{Gates: []weir.Gate{&theirs}}})
	kinds := []llmsim.Fault{
		{Kind: llmsim.StreamError}, {Kind: llmsim.StreamError, Events: 2}, {Kind: llmsim.Cut}, {Kind: llmsim.Cut, Events: 2}, {Kind: llmsim.EmptyBody},
		{Kind: llmsim.Hang, Where: llmsim.AfterHeaders}, {Kind: llmsim.Hang, Where: llmsim.AfterContent}, {Kind: llmsim.Reset}, {Kind: llmsim.Error},
		{Kind: llmsim.Throttle, Hint: time.Millisecond}, {Kind: llmsim.BadJSON}, {Kind: llmsim.Slow, Delay: 5 * time.Millisecond}, {Kind: llmsim.NeverEnding},
	}
	var mu sync.Mutex
	roll := func(n int) int { mu.Lock(); defer mu.Unlock(); return random.IntN(n) }
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 12 {
				if roll(2) == 0 {
					b.sim.Fault(kinds[roll(len(kinds))])
				}
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(roll(200))*time.Millisecond)
				if roll(2) == 0 {
					ctx, leave = context.WithTimeout(t.Context(), 20*time.Second)
				}
				text := fmt.Sprint("question ", roll(20))
				if roll(10) == 0 {
					text = `"` // not JSON
				}
				r, _ := http.NewRequestWithContext(ctx, http.MethodPost, b.weir.URL+"/chat"+completions, strings.NewReader(fmt.Sprintf(`{"model":"gpt-4o","stream":%v,"messages":[{"role":"user","content":"%s"}]}`, (i+j)%2 == 0, text)))
				r.Header.Set("Authorization", "Bearer sk-test")
				r.Header.Set("Content-Type", "application/json")
				if resp, err := http.DefaultClient.Do(r); err == nil {
					_, _ = io.CopyN(io.Discard, resp.Body, 20_000)
					_ = resp.Body.Close()
				}
				leave()
			}
		})
	}
	at, _ := url.Parse(b.at.URL)
	stop := make(chan struct{})
	var reloads sync.WaitGroup
	reloads.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
			plan, own := c.Config(), o
			own.Tiers = all[:1+i%len(all)]
			plan.Tiers = plan.Tiers[:1]
			for i := range own.Tiers[1:] {
				plan.Tiers = append(plan.Tiers, cascade.TierConfig{Name: fmt.Sprint("tier", i+1), Confidence: 0.5, Instant: i > 0})
			}
			if err := c.Set(plan); err != nil {
				t.Error(err)
			}
			d, err := gateway.New(own)
			if err != nil {
				t.Error(err)
				return
			}
			if err := b.p.Set([]proxy.Upstream{{Name: "chat", URL: at, Policy: p, Dialect: d}}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	close(stop)
	reloads.Wait()
	b.calls.Wait()
	if err := o.Cache.Close(); err != nil { // waits for refreshes
		t.Error(err)
	}
	if ours.n.Load() != 0 || theirs.n.Load() != 0 {
		t.Errorf("seed %d: %d permits of callers and %d of the upstream were never settled", seed, ours.n.Load(), theirs.n.Load())
	}
	if ours.most.Load() == 0 || theirs.most.Load() == 0 {
		t.Error("nothing was asked for")
	}
}

// A held counts the permits that are not settled.
type held struct{ n, most atomic.Int64 }

func (h *held) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) {
	h.n.Add(1)
	h.most.Add(1)
	return func(outcome.Outcome) { h.n.Add(-1) }, nil
}
