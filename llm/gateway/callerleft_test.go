package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
)

// leave posts a question and disconnects when the provider has received it or when weir reports a timeout.
func (b *bench) leave(has <-chan struct{}, body string, header ...string) {
	b.Helper()
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost, b.weir.URL+"/chat"+completions, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-User", "ann")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}()
	if len(header) == 0 {
		select {
		case <-has:
		case <-over: // the request was refused
		}
		leave()
	}
	<-over
	b.calls.Wait()
}

// A caller that disconnects before the answer starts, or states too short a time, is charged the estimate, because the
// provider is already working.
func TestWhoLeavesBeforeTheAnswerPays(t *testing.T) {
	const whole = `{"model":"gpt-4o","max_tokens":500,"messages":[{"role":"user","content":"hi"}]}`
	stream := strings.Replace(whole, "{", `{"stream":true,`, 1)
	role := `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}` + "\n\n"
	inTime := []string{gateway.TimeoutHeader, "100ms"}
	const input = 7 // tokens of the question
	for _, c := range []struct {
		name, body, begins string
		header             []string
		message            bool
	}{
		{name: "whole", body: whole}, {name: "stream", body: stream}, {name: "thinking", body: stream, begins: role},
		{name: "whole of tiers", body: whole, message: true}, {name: "thinking of tiers", body: stream, begins: role, message: true},
		{name: "in a hurry", body: whole, header: inTime}, {name: "in a hurry, thinking", body: stream, begins: role, header: inTime},
		{name: "in a hurry, tiers", body: whole, header: inTime, message: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			has := make(chan struct{}, 100)
			p := provider(t, func(w http.ResponseWriter, r *http.Request) {
				if c.begins != "" {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, c.begins)
					_ = http.NewResponseController(w).Flush()
				}
				has <- struct{}{}
				<-r.Context().Done()
			})
			mine, often := plenty("tokens"), perUser(4, "")
			mine.Scope = "user"
			o := gateway.Options{Callers: callers(t, mine, often), Prices: price.BuiltIn(), Ledger: price.NewLedger(100)}
			if c.message {
				o.Cascade, o.Tiers = tiers(t, gateway.Tier{Messages: []string{"Sorry."}})
			}
			var sent atomic.Int64
			b := start(t, setup{policy: counting(), options: o, at: p.URL, weir: weir.Options{Events: weir.Events{Ended: func(weir.Ended) { sent.Add(1) }}}})
			for range 10 {
				b.leave(has, c.body, c.header...)
			}
			n := sent.Load()
			if n == 0 || n > 4 {
				t.Errorf("%d calls of ann were sent, who may make 4", n)
			}
			came, _ := p.requests()
			if got := int64(len(came)); got > n || got < n && len(c.header) == 0 { // the time may be over before the provider has read a call
				t.Errorf("%d calls came to the provider of %d that were sent", got, n)
			}
			for _, l := range o.Callers.Limits.Look(2).Limits {
				if got, want := l.Level.Full-l.Level.Left, n*(input+500); l.Limit.Unit == "tokens" && l.Key == "ann" && got != want {
					t.Errorf("ann's quota has paid %d tokens, want %d", got, want)
				}
			}
			calls, in, out := int64(0), int64(0), int64(0)
			for _, sum := range o.Ledger.All() {
				calls, in, out = calls+sum.Calls, in+sum.Input, out+sum.Output
			}
			if calls != n || in != n*input || out != n*500 {
				t.Errorf("the ledger has %d calls and %d and %d tokens, want %d, %d and %d", calls, in, out, n, n*input, n*500)
			}
			p.CloseClientConnections()
		})
	}
}

// A caller is not charged for an attempt that the provider refused or broke off, even if the caller disconnects before
// the next attempt.
func TestWhoLeavesAFailureDoesNotPay(t *testing.T) {
	for _, way := range []func(http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		has := make(chan struct{}, 100)
		p := provider(t, func(w http.ResponseWriter, r *http.Request) { way(w) })
		policy := counting()
		policy.Retry.Attempts, policy.Retry.Base, policy.Retry.Cap = 3, 30*time.Second, 30*time.Second
		mine := plenty("tokens")
		mine.Scope = "user"
		o := gateway.Options{Callers: callers(t, mine), Ledger: price.NewLedger(100)}
		b := start(t, setup{policy: policy, options: o, at: p.URL, weir: weir.Options{Events: weir.Events{Retried: func(weir.Retried) { has <- struct{}{} }}}})
		b.leave(has, `{"model":"gpt-4o","max_tokens":500,"messages":[{"role":"user","content":"hi"}]}`)
		for _, l := range o.Callers.Limits.Look(2).Limits {
			if got := l.Level.Full - l.Level.Left; got != 0 {
				t.Errorf("ann has paid %d tokens for a failure", got)
			}
		}
		for who, sum := range o.Ledger.All() {
			t.Error(fmt.Sprint("the ledger has ", who, sum))
		}
	}
}
