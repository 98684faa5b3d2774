//go:build unix && clients

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/playedhosts"
)

// The SDKs of two providers report a spent budget as their error for rate limits, with weir's text, and do not call again.
func TestRunBudgetOfSDKs(t *testing.T) {
	needs(t, "node")
	const report = `.catch(e => { console.log(e.constructor.name, e.status, e.message) });`
	for _, c := range []struct{ name, program, answer string }{
		{"openai", `const { default: OpenAI } = require("openai"); const c = new OpenAI({ apiKey: "sk-x" });
(async () => { for (let i = 0; i < 4; i++) await c.chat.completions.create({ model: "gpt-4o", max_tokens: 10, messages: [{ role: "user", content: "Is it?" }] }).then(r => console.log(r.choices[0].message.content))` + report + ` })();`,
			`{"object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`},
		{"anthropic", `const { default: Anthropic } = require("@anthropic-ai/sdk"); const c = new Anthropic({ apiKey: "sk-x" });
(async () => { for (let i = 0; i < 4; i++) await c.messages.create({ model: "claude-sonnet-4-5", max_tokens: 10, messages: [{ role: "user", content: "Is it?" }] }).then(r => console.log(r.content[0].text))` + report + ` })();`,
			`{"type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Yes."}],"usage":{"input_tokens":10,"output_tokens":5}}`},
	} {
		for _, budget := range []struct{ amount, says string }{
			{"2 calls", "(2 in any 24h0m0s) for run "},
			{"0.0002 USD", "of 0.0002 USD; the call needs "},
			{"20 tokens", "(20 in any 24h0m0s) for run "},
		} {
			t.Run(c.name+" "+budget.amount, func(t *testing.T) {
				var calls atomic.Int64
				hosts := playedhosts.Start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					calls.Add(1)
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, c.answer)
				}))
				got := weirRun(t, hosts.Env(), "--run", "sdk", "--budget", budget.amount, "--", "timeout", "60", "node", "-e", c.program)
				served, refused := strings.Count(got.out, "Yes."), strings.Count(got.out, "RateLimitError 429 429 ")
				if served == 0 || refused == 0 || served+refused != 4 || int(calls.Load()) != served || !strings.Contains(got.out, budget.says) || got.status != 0 {
					t.Errorf("%d calls reached the provider; got %+v", calls.Load(), got)
				}
				if !strings.Contains(got.err, "weir: 4 calls, ") || !strings.Contains(got.err, fmt.Sprintf("%d refused by weir", refused)) {
					t.Errorf("the SDK called again: summary %q", got.err)
				}
			})
		}
	}
}
