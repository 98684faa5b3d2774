package llmdialect_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/proxy/llmdialect"
)

// A tongue is how a family writes a stream.
type tongue struct {
	family llm.Family
	model  string
	path   string
	body   string
	before string
	word   string // one event of one word
	usage  string // an event that says %s tokens of output
	end    string
	unit   string // that its rule counts the output in
}

var tongues = []tongue{
	{llm.OpenAI, "gpt-4o", completions, `{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
		"", `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" word"}}]}` + "\n\n",
		`data: {"id":"x","choices":[],"usage":{"prompt_tokens":8,"completion_tokens":%s}}` + "\n\n", "data: [DONE]\n\n", "tokens"},
	{llm.OpenAI, "o3", completions, `{"model":"o3","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		"", `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" word"}}]}}]}` + "\n\n", "", "", "tokens"},
	{llm.Anthropic, "claude-3-haiku-20240307", "/v1/messages", `{"model":"claude-3-haiku-20240307","stream":true,"max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}`,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\",\"model\":\"claude-3-haiku-20240307\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n", "", "", "output_tokens"},
	{llm.Anthropic, "claude-3-haiku-20240307", "/v1/messages", `{"model":"claude-3-haiku-20240307","stream":true,"max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}`,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\",\"model\":\"claude-3-haiku-20240307\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\" word\"}}\n\n", "", "", "output_tokens"},
	{llm.Gemini, "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		"", `data: {"candidates":[{"content":{"role":"model","parts":[{"text":" word"}]},"index":0}]}` + "\n\n", "", "", ""},
}

// counting is a policy whose limits say how much was used.
func counting() weir.Policy {
	p := quick()
	for _, unit := range []string{"tokens", "output_tokens"} {
		p.Limits = append(p.Limits, plenty(unit))
	}
	return p
}

// plenty is a quota that nobody uses up.
func plenty(unit string) limit.Limit {
	return limit.Limit{Name: unit, Unit: unit, Shape: limit.Fixed, Every: bucket.Month, Rate: bucket.Rate{Amount: 10_000_000}}
}

// Who leaves a stream before it says what it has used pays for what has passed by: the
// limits of the provider and of the caller, the ledger and whoever listens.
func TestWhoLeavesAStreamPays(t *testing.T) {
	const words = 5000
	for _, way := range tongues {
		t.Run(fmt.Sprint(way.family, " ", way.model), func(t *testing.T) {
			var written atomic.Int64
			p := provider(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, way.before)
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, way.word); err != nil {
						return
					}
					written.Add(1)
				}
			})
			mine := plenty("tokens")
			mine.Scope = "user"
			var heard atomic.Pointer[llmdialect.Used]
			o := llmdialect.Options{
				Family: way.family, Callers: callers(t, mine), Prices: price.BuiltIn(), Ledger: price.NewLedger(100),
				Events: llmdialect.Events{Used: func(u llmdialect.Used) { heard.Store(&u) }},
			}
			b := before(t, o, counting(), p.url())
			r, _ := http.NewRequest(http.MethodPost, b.weir.URL+"/chat"+way.path, strings.NewReader(way.body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-User", "ann")
			resp, err := http.DefaultClient.Do(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%v %v", resp, err)
			}
			read := int64(0)
			for s := bufio.NewScanner(resp.Body); read < words && s.Scan(); {
				if strings.Contains(s.Text(), " word") {
					read++
				}
			}
			_ = resp.Body.Close()
			b.calls.Wait()
			p.CloseClientConnections()
			enough := func(what string, got int64) {
				t.Helper()
				if got < read || got > written.Load()+2000 {
					t.Errorf("%s: %d tokens are charged, %d words were read and %d written", what, got, read, written.Load())
				}
			}
			if way.unit != "" {
				enough("limit", 10_000_000-b.left("chat", way.unit))
			}
			for _, l := range o.Callers.Limits.Look(1).Limits {
				if l.Key == "ann" {
					enough("caller", 10_000_000-l.Level.Left)
				}
			}
			u := heard.Load()
			if u == nil {
				t.Fatal("nobody heard of it")
			}
			enough("heard", u.Usage.Output)
			for who, sum := range o.Ledger.All() {
				enough(fmt.Sprint("ledger of ", who), sum.Output)
				if each, ok := o.Prices.Find(way.model); ok && sum.Cost < price.Amount(read)*each.Output {
					t.Errorf("it has cost %v, want at least %d words at %v", sum.Cost, read, each.Output)
				}
			}
		})
	}
}

// Usage that cannot be is neither believed nor priced.
func TestUsageThatCannotBe(t *testing.T) {
	way := tongues[0]
	for _, said := range []string{"9000000000000000000", "9e18", "1e300", "-5", "-9000000000000000000", `"NaN"`, "30000000", `"many"`, "{}", "0", "null"} {
		t.Run(said, func(t *testing.T) {
			const words = 300
			for _, streamed := range []bool{true, false} {
				p := provider(t, func(w http.ResponseWriter, r *http.Request) {
					if !streamed {
						w.Header().Set("Content-Type", "application/json")
						fmt.Fprintf(w, `{"id":"x","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":%s,"completion_tokens":%[2]s}}`, strings.Repeat(" word", words), said)
						return
					}
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, strings.Repeat(way.word, words)+
						`data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+fmt.Sprintf(way.usage, said)+way.end)
				})
				o := llmdialect.Options{Prices: price.BuiltIn(), Ledger: price.NewLedger(100)}
				b := before(t, o, counting(), p.url())
				body := way.body
				if !streamed {
					body = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`
				}
				if a := b.post(way.path, body); a.StatusCode != http.StatusOK {
					t.Fatalf("%d %s", a.StatusCode, a.body)
				}
				used := 10_000_000 - b.left("chat", "tokens")
				if used < words || used > 5000 {
					t.Errorf("streamed %v: %d tokens are charged for %d words", streamed, used, words)
				}
				for _, sum := range o.Ledger.All() {
					if sum.Output < 250 || sum.Output > 5000 || sum.Input > 5000 || sum.Cost > price.Dollar/10 {
						t.Errorf("streamed %v: the ledger has %+v", streamed, sum)
					}
				}
			}
		})
	}
}
