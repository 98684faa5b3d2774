package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/cascade/similar"
	"github.com/seed1158cd35/weir/internal/test/llmsim"
	"github.com/seed1158cd35/weir/llm/gateway"
)

func newSimilar(t *testing.T) *similar.Index {
	x, err := similar.New(similar.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// A similar question is answered from the cache. The headers, the body and the events report the confidence.
func TestASimilarQuestionIsAnsweredFromTheCache(t *testing.T) {
	var mu sync.Mutex
	var told []gateway.Answered
	b := start(t, setup{policy: quick(), options: gateway.Options{
		Cache: newCache(t, cache.Options{}), Similar: newSimilar(t),
		Events: gateway.Events{Answered: func(a gateway.Answered) { mu.Lock(); told = append(told, a); mu.Unlock() }},
	}})
	first := b.chat("How do I reset my password?")
	b.calls.Wait()
	for _, ask := range []func(string, ...string) answer{b.chat, b.stream} {
		a := ask("Hello, how can I reset my password, please?")
		b.calls.Wait()
		sure, err := strconv.ParseFloat(a.Header.Get("X-Weir-Confidence"), 64)
		if a.Header.Get("X-Weir-Tier") != "cached" || a.Header.Get("X-Weir-Cache") != "similar" || a.Header.Get("X-Weir-Degraded") != "false" || err != nil || sure < 0.95 || sure >= 1 {
			t.Errorf("got %v", a.Header)
		}
		if a.says(t) != first.says(t) {
			t.Errorf("got %s", a.body)
		}
		if a.Header.Get("Content-Type") != "application/json" {
			continue
		}
		var body struct{ Metadata map[string]string }
		if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Metadata["weir_tier"] != "cached" || body.Metadata["weir_confidence"] != a.Header.Get("X-Weir-Confidence") {
			t.Errorf("got %s", a.body)
		}
	}
	exact := b.chat("How do I reset my password?")
	b.calls.Wait()
	if exact.Header.Get("X-Weir-Cache") != "hit" || exact.Header.Get("X-Weir-Confidence") != "1" {
		t.Errorf("the question itself: %v", exact.Header)
	}
	if n := len(b.sim.Log()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	mu.Lock()
	defer mu.Unlock()
	var states []string
	for _, a := range told {
		states = append(states, a.Cache)
	}
	if len(states) != 4 || states[0] != "miss" || states[1] != "similar" || states[2] != "similar" || states[3] != "hit" {
		t.Errorf("told %v", states)
	}
}

// A question that differs in more than filler words goes to the model. So does every question if the feature is off or
// the caller asks for a fresh answer.
func TestWhatIsNotSimilarIsAsked(t *testing.T) {
	const asked = `{"model":"gpt-4o","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"How do I reset my password?"}]}`
	const again = `{"model":"gpt-4o","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"how can I reset my password"}]`
	for name, c := range map[string]struct {
		body, header, value string
		off                 bool
		want                int
	}{
		"similar":            {body: again + "}", want: 1},
		"not switched on":    {body: again + "}", off: true, want: 2},
		"asked anew":         {body: again + "}", header: "Cache-Control", value: "no-cache", want: 2},
		"another header":     {body: again + "}", header: "X-Other", value: "1", want: 2},
		"another credential": {body: again + "}", header: "Authorization", value: "Bearer sk-other", want: 2},
		"another parameter":  {body: again + `,"max_tokens":7}`, want: 2},
		"tools":              {body: again + `,"tools":[{"type":"function","function":{"name":"f"}}]}`, want: 2},
		"other instructions": {body: `{"model":"gpt-4o","messages":[{"role":"system","content":"Be long."},{"role":"user","content":"how can I reset my password"}]}`, want: 2},
		"another question":   {body: `{"model":"gpt-4o","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"how can I reset your password"}]}`, want: 2},
	} {
		o := gateway.Options{Cache: newCache(t, cache.Options{})}
		if !c.off {
			o.Similar = newSimilar(t)
		}
		b := start(t, setup{policy: quick(), options: o})
		b.post(completions, asked)
		b.calls.Wait()
		var header []string
		if c.header != "" {
			header = []string{c.header, c.value}
		}
		b.post(completions, c.body, header...)
		b.calls.Wait()
		if got := len(b.sim.Log()); got != c.want {
			t.Errorf("%s: the model was asked %d times, want %d", name, got, c.want)
		}
	}
}

// Tenants do not get answers to each other's questions.
func TestASimilarQuestionOfAnotherTenantIsAsked(t *testing.T) {
	who := callers(t)
	who.Keys[gateway.Tenant], who.Consumed = func(r *http.Request) (string, error) { return r.Header.Get("X-Tenant"), nil }, []string{"X-Tenant"}
	b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{}), Similar: newSimilar(t), Callers: who}})
	for i, c := range []struct{ tenant, text, want string }{
		{"ann", "How do I reset my password?", "miss"}, {"bob", "how can I reset my password", "miss"}, {"ann", "how can I reset my password please", "similar"}, {"", "how to reset my password", "miss"},
	} {
		a := b.chat(c.text, "X-Tenant", c.tenant)
		b.calls.Wait()
		if got := a.Header.Get("X-Weir-Cache"); got != c.want {
			t.Errorf("%d: %s asks %q: %s, want %s", i, c.tenant, c.text, got, c.want)
		}
	}
}

// A similar answer that is no longer fresh is only used by the cache's tier, with less confidence.
func TestAnOldAnswerToASimilarQuestionIsForTheTierOfTheCache(t *testing.T) {
	fails := false
	var mu sync.Mutex
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if fails {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"So."},"finish_reason":"stop"}]}`))
	}))
	t.Cleanup(at.Close)
	o := gateway.Options{Cache: newCache(t, cache.Options{TTL: time.Nanosecond, StaleWhileRevalidate: -1, StaleIfError: time.Hour}), Similar: newSimilar(t)}
	o.Cascade, o.Tiers = tiers(t, gateway.Tier{Cached: true})
	b := start(t, setup{policy: quick(), options: o, at: at.URL, sim: llmsim.Config{}})
	b.chat("How do I reset my password?")
	b.calls.Wait()
	b.chat("how can I reset my password")
	b.calls.Wait()
	mu.Lock()
	fails = true
	mu.Unlock()
	a := b.chat("how to reset my password please")
	b.calls.Wait()
	sure, _ := strconv.ParseFloat(a.Header.Get("X-Weir-Confidence"), 64)
	if a.StatusCode != 200 || a.Header.Get("X-Weir-Cache") != "similar" || a.Header.Get("X-Weir-Degraded") != "true" || sure <= 0 || sure >= 0.5 {
		t.Errorf("got %s %v %s", a.Status, a.Header, a.body)
	}
}
