package gateway_test

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A background response is complete when it is queued. It is requested once, does not count as a failure, and is not
// cached.
func TestABackgroundResponseIsQueuedOnce(t *testing.T) {
	for _, status := range []string{"queued", "in_progress"} {
		p := provider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"resp_1","object":"response","created_at":1,"status":"`+status+`","background":true,"error":null,"incomplete_details":null,"model":"gpt-4o","output":[],"usage":null}`)
		})
		policy, o := shipped(t, "preset: openai")
		o.Cache, o.Key = newCache(t, cache.Options{}), ""
		b := before(t, o, policy, p.url())
		const ask = `{"model":"gpt-4o","input":"think for long","background":true}`
		for range 5 {
			a := b.post("/v1/responses", ask)
			if a.StatusCode != 200 || a.Header.Get(proxy.AttemptsHeader) != "" || a.Header.Get(gateway.CacheHeader) == "hit" {
				t.Errorf("%s: %d %v %s", status, a.StatusCode, a.Header, a.body)
			}
		}
		if came, _ := p.requests(); len(came) != 5 {
			t.Errorf("%s: %d requests came for 5", status, len(came))
		}
	}
}

// A request that starts background work or adds to a conversation is not repeated once a provider may have started it.
func TestWhatActsAtTheProviderIsNotRepeated(t *testing.T) {
	for body, want := range map[string]int{
		`{"model":"gpt-4o","input":"hi"}`:                                                2,
		`{"model":"gpt-4o","input":"hi","background":false,"conversation":null}`:         2,
		`{"model":"gpt-4o","input":"hi","background":true}`:                              1,
		`{"model":"gpt-4o","input":"hi","conversation":"conv_1"}`:                        1,
		`{"model":"gpt-4o","input":"hi","conversation":{"id":"conv_1"},"stream":true}`:   1,
		`{"model":"gpt-4o","input":"hi","previous_response_id":"resp_1","stream":false}`: 2,
	} {
		for _, way := range []http.HandlerFunc{
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
			func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		} {
			p := provider(t, way)
			policy := quick()
			policy.Retry.Attempts, policy.Retry.Base = 2, time.Millisecond
			b := before(t, gateway.Options{}, policy, p.url())
			b.post("/v1/responses", body)
			if came, _ := p.requests(); len(came) != want {
				t.Errorf("%s: %d attempts, want %d", body, len(came), want)
			}
		}
	}
}

// An answer that depends on the provider's state is not cached.
func TestWhatDependsOnTheProvidersStateIsNotKept(t *testing.T) {
	for _, c := range []struct {
		path, body, again string
		kept              bool
	}{
		{path: "/v1/responses", body: `{"model":"gpt-4o","input":"go on"}`, kept: true},
		{path: "/v1/responses", body: `{"model":"gpt-4o","input":"go on","conversation":null,"background":false,"previous_response_id":null}`, kept: true},
		{path: "/v1/responses", body: `{"model":"gpt-4o","input":"go on","conversation":"conv_1"}`},
		{path: "/v1/responses", body: `{"model":"gpt-4o","input":"go on","conversation":{"id":"conv_1"}}`},
		{path: "/v1/responses", body: `{"model":"gpt-4o","input":"go on","previous_response_id":"resp_1"}`},
		{path: "/v1/responses", body: `{"model":"gpt-4o","input":"go on","background":true}`},
		{path: "/v1/responses", body: `{"model":"gpt-4o","input":"go on","store":false}`, again: `{"model":"gpt-4o","input":"go on"}`},
		{path: "/v1/responses", body: `{"model":"gpt-4o","input":"go on","tools":[{"type":"mcp","server_label":"x","server_url":"https://x.example"}]}`},
		{path: "/v1/messages", body: `{"model":"claude-3-haiku-20240307","max_tokens":90,"messages":[{"role":"user","content":"go on"}]}`, kept: true},
		{path: "/v1/messages", body: `{"model":"claude-3-haiku-20240307","max_tokens":90,"container":"c_1","messages":[{"role":"user","content":"go on"}]}`},
		{path: "/v1/messages", body: `{"model":"claude-3-haiku-20240307","max_tokens":90,"mcp_servers":[{"type":"url","url":"https://x.example","name":"x"}],"messages":[{"role":"user","content":"go on"}]}`},
	} {
		b := start(t, setup{policy: quick(), options: gateway.Options{Cache: newCache(t, cache.Options{})}})
		if c.again == "" {
			c.again = c.body
		}
		for i, body := range []string{c.body, c.again} {
			a := b.post(c.path, body, "Anthropic-Version", "2023-06-01")
			if hit := a.Header.Get(gateway.CacheHeader) == "hit"; a.StatusCode != 200 || hit != (c.kept && i == 1) {
				t.Errorf("%s: %d, cache %q: %s", body, a.StatusCode, a.Header.Get(gateway.CacheHeader), a.body)
			}
		}
	}
}
