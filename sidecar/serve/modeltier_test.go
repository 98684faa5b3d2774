package serve

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// The cost of a call depends on the service tier that its answer reports, wherever the provider reports it. It is
// reported once: in the headers, or in the trailers of a stream.
func TestCostGoesByServiceTierAndStandsOnce(t *testing.T) {
	const (
		chat     = "/up/v1/chat/completions"
		messages = "/up/v1/messages"
		whole    = `"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000000,"completion_tokens":1,"total_tokens":1000001}}`
		chunk    = `"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000000,"completion_tokens":1,"total_tokens":1000001}}`
		response = `"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}],"usage":{"input_tokens":1000000,"output_tokens":1,"total_tokens":1000001}}`
		gemini   = `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100000,"candidatesTokenCount":1,`
		claude   = `{"id":"m","type":"message","role":"assistant","model":"claude-opus-4-6","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1000000,"output_tokens":1,`
	)
	for _, c := range []struct {
		name, family, path, body string
		header, answer, want     string
		stream                   bool
	}{
		{name: "none", family: "openai", path: chat, body: `{"model":"gpt-4.1",`, answer: `{` + whole, want: "2.000008 USD"},
		{name: "default", family: "openai", path: chat, body: `{"model":"gpt-4.1",`, answer: `{"service_tier":"default",` + whole, want: "2.000008 USD"},
		{name: "flex", family: "openai", path: chat, body: `{"model":"gpt-4.1",`, answer: `{"service_tier":"flex",` + whole, want: "1.000004 USD"},
		{name: "asked for, not served", family: "openai", path: chat, body: `{"service_tier":"priority","model":"gpt-4.1",`, answer: `{"service_tier":"default",` + whole, want: "2.000008 USD"},
		{name: "priority in a stream", family: "openai", path: chat, body: `{"model":"gpt-4.1","stream":true,`, answer: `data: {"service_tier":"priority",` + chunk + "\n\ndata: [DONE]\n\n", want: "3.500014 USD", stream: true},
		{name: "auto", family: "openai", path: chat, body: `{"model":"gpt-4.1",`, answer: `{"service_tier":"auto",` + whole, want: "2.000008 USD"},
		{name: "Responses", family: "openai", path: "/up/v1/responses", body: `{"input":"hi","model":"gpt-4.1",`, answer: `{"service_tier":"flex",` + response, want: "1.000004 USD"},
		{name: "Claude batch", family: "anthropic", path: messages, body: `{"max_tokens":9,"model":"claude-opus-4-6",`, answer: claude + `"service_tier":"batch"}}`, want: "2.5000125 USD"},
		{name: "Claude fast", family: "anthropic", path: messages, body: `{"max_tokens":9,"model":"claude-opus-4-6",`, answer: claude + `"service_tier":"standard","speed":"fast"}}`, want: "30.000150 USD"},
		{name: "Claude in the US", family: "anthropic", path: messages, body: `{"max_tokens":9,"model":"claude-opus-4-6",`, answer: claude + `"inference_geo":"us"}}`, want: "5.5000275 USD"},
		{name: "Gemini header", family: "gemini", path: "/up/v1beta/models/gemini-2.5-pro:generateContent", body: `{"contents":[{"parts":[{"text":"hi"}]}],`, header: "priority", answer: gemini + `"totalTokenCount":100001}}`, want: "0.225018 USD"},
		{name: "Vertex", family: "gemini", path: "/up/v1beta/models/gemini-2.5-pro:generateContent", body: `{"contents":[{"parts":[{"text":"hi"}]}],`, answer: gemini + `"trafficType":"ON_DEMAND_FLEX"}}`, want: "0.062505 USD"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "application/json")
					if c.stream {
						w.Header().Set("Content-Type", "text/event-stream")
					}
					if c.header != "" {
						w.Header().Set("X-Gemini-Service-Tier", c.header)
					}
					_, _ = io.WriteString(w, c.answer)
				}))
				defer serveInside(t, n, "upstreams: {up: {url: \""+up+"\", llm: {family: "+c.family+"}}}\n")()
				body := c.body + `"messages":[{"role":"user","content":"hi"}]}`
				if c.family == "gemini" || strings.Contains(c.body, "input") {
					body = strings.TrimSuffix(c.body, ",") + "}"
				}
				resp, err := (&http.Client{Transport: n.Transport()}).Post("http://localhost"+c.path, "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if _, ok := resp.Trailer["X-Weir-Cost"]; ok != c.stream {
					t.Errorf("a cost in the trailers: %v, want %v", ok, c.stream)
				}
				all := append(resp.Header["X-Weir-Cost"], resp.Trailer["X-Weir-Cost"]...)
				if resp.StatusCode != 200 || len(all) != 1 || all[0] != c.want {
					t.Errorf("%s: the cost is %q, want %q once; %.200s", resp.Status, all, c.want, text)
				}
			})
		})
	}
}
