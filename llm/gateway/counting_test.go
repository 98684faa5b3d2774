package gateway_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// callers returns limits of callers that are identified by the header X-User.
func callers(t *testing.T, l ...limit.Limit) *gateway.Callers {
	t.Helper()
	u, err := weir.New("callers", weir.Policy{Limits: l, MaxWait: -1}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &gateway.Callers{Limits: u, Consumed: []string{"X-User"}, Keys: map[string]gateway.Key{
		"user": func(r *http.Request) (string, error) { return r.Header.Get("X-User"), nil },
	}}
}

func ask(max string) string {
	return fmt.Sprintf(`{"model":"gpt-4o","max_tokens":%s,"messages":[{"role":"user","content":"hi"}]}`, max)
}

// OpenAI counts max_tokens regardless of the usage. A max_tokens that exceeds the limit takes the entire limit and
// leaves no debt.
func TestALargeMaxTokensLeavesNoDebt(t *testing.T) {
	p := quick()
	p.MaxWait = -1
	p.Limits = []limit.Limit{tokenLimit(60_000, time.Minute, 1000)}
	b := start(t, setup{policy: p})
	if a := b.post(completions, ask("9000000")); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	for _, l := range b.p.Upstreams()["chat"].Look(1).Limits {
		if l.Level.Reset > 2*time.Second {
			t.Errorf("the limit is full in %v, want a second", l.Level.Reset)
		}
	}
}

func TestACallersQuotaIsWhatWasUsed(t *testing.T) {
	day := limit.Limit{Name: "day", Unit: "tokens", Scope: "user", Shape: limit.Calendar, Every: bucket.Day, Rate: bucket.Rate{Amount: 2000}}
	b := start(t, setup{policy: quick(), options: gateway.Options{Callers: callers(t, day)}})
	for i := range 20 {
		if a := b.post(completions, ask("3000"), "X-User", "ann"); a.StatusCode != 200 {
			t.Fatalf("call %d: %d %s", i, a.StatusCode, a.body)
		}
	}
}

func TestWhatIsRefusedUsesNoTokens(t *testing.T) {
	p := quick()
	p.Limits = []limit.Limit{tokenLimit(1, time.Minute, 100_000)}
	b := start(t, setup{policy: p, sim: llmsim.Config{Models: map[string]llmsim.Model{"other": {}}}})
	if a := b.post(completions, ask("500")); a.StatusCode != 404 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if got := b.left("chat", "tpm"); got < 99_999 {
		t.Errorf("%d tokens are left after a call that was refused", got)
	}
}

func TestWhoCallsIsNotSentOn(t *testing.T) {
	var got http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`))
	}))
	defer s.Close()
	b := start(t, setup{policy: quick(), options: gateway.Options{Callers: callers(t)}, at: s.URL})
	if a := b.chat("hi", "X-User", "ann", "X-Weir-Timeout", "5s"); a.StatusCode != 200 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	if got.Get("X-User") != "" || got.Get("X-Weir-Timeout") != "" || got.Get("Authorization") == "" {
		t.Errorf("the provider got %v", got)
	}
}

// A response without an answer leads to the next tier, whatever its status.
func TestWhatIsNoAnswerIsNotPassedOn(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"page": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html>login</html>"))
		},
		"empty": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("{}"))
		},
		"null": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte("null"))
		},
		"nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://login.example.com", http.StatusFound)
		},
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(answer)
			defer s.Close()
			c, all := tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
			b := start(t, setup{policy: quick(), options: gateway.Options{Cascade: c, Tiers: all}, at: s.URL})
			a := b.chat("hi")
			b.wants(a, gateway.TierHeader, "tier1")
			b.wants(a, gateway.CostHeader, "0.000000 USD")
			if a.says(t) != "We are sorry." {
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
		})
	}
}

// A call does not queue longer than the time that its caller states.
func TestACallersTimeoutIsHeard(t *testing.T) {
	p := quick()
	p.MaxWait = time.Minute
	p.Limits = []limit.Limit{{Name: "rpm", Rate: bucket.Rate{Amount: 1, Per: 30 * time.Second, Burst: 1}}}
	b := start(t, setup{policy: p})
	b.chat("one")
	for _, header := range []string{gateway.TimeoutHeader, "X-Stainless-Timeout"} {
		if a := b.chat("two", header, "5"); a.StatusCode != 429 {
			t.Errorf("%s: %d, want a refusal at once: the turn comes in 30s", header, a.StatusCode)
		}
	}
}
