package gateway_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/frame"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/price"
)

// A tongue is the stream format of a family.
type tongue struct {
	family llm.Family
	model  string
	path   string
	body   string
	before string
	word   string // an event with one word
	usage  string // an event that reports %s output tokens
	end    string
	unit   string // the unit in which its rule counts output
	times  int64  // how often the unit is counted
}

var tongues = []tongue{
	{llm.OpenAI, "gpt-4o", completions, `{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
		"", `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":" word"}}]}` + "\n\n",
		`data: {"id":"x","choices":[],"usage":{"prompt_tokens":8,"completion_tokens":%s}}` + "\n\n", "data: [DONE]\n\n", "tokens", 1},
	{llm.OpenAI, "o3", completions, `{"model":"o3","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		"", `data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":" word"}}]}}]}` + "\n\n", "", "", "tokens", 1},
	{llm.Anthropic, "claude-3-haiku-20240307", "/v1/messages", `{"model":"claude-3-haiku-20240307","stream":true,"max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}`,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\",\"model\":\"claude-3-haiku-20240307\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" word\"}}\n\n", "", "", "output_tokens", 1},
	{llm.Anthropic, "claude-3-haiku-20240307", "/v1/messages", `{"model":"claude-3-haiku-20240307","stream":true,"max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}`,
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\",\"model\":\"claude-3-haiku-20240307\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\" word\"}}\n\n", "", "", "output_tokens", 1},
	{llm.Gemini, "gemini-2.5-flash", "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		"", `data: {"candidates":[{"content":{"role":"model","parts":[{"text":" word"}]},"index":0}]}` + "\n\n", "", "", "", 1},
	responding(`{"type":"response.output_text.delta","sequence_number":4,"item_id":"m","output_index":0,"content_index":0,"delta":" word","logprobs":[]}`),
	responding(`{"type":"response.reasoning_summary_text.delta","sequence_number":4,"item_id":"m","output_index":0,"summary_index":0,"delta":" word"}`),
	responding(`{"type":"response.function_call_arguments.delta","sequence_number":4,"item_id":"m","output_index":0,"delta":" word"}`),
	conversing("anthropic.claude-3-haiku-20240307-v1:0", 1, `{"text":" word"}`),
	conversing("anthropic.claude-sonnet-4-20250514-v1:0", 5, `{"reasoningContent":{"text":" word"}}`),
	conversing("amazon.nova-lite-v1:0", 1, `{"toolUse":{"input":" word"}}`),
	invoking("anthropic.claude-3-haiku-20240307-v1:0", 1, `{"anthropic_version":"bedrock-2023-05-31","max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}`,
		`{"type":"message_start","message":{"id":"x","model":"claude","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}`),
	invoking("anthropic.claude-sonnet-4-20250514-v1:0", 5, `{"anthropic_version":"bedrock-2023-05-31","max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}`,
		"", `{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" word"}}`),
	invoking("amazon.nova-lite-v1:0", 1, `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`,
		`{"messageStart":{"role":"assistant"}}`, `{"contentBlockDelta":{"delta":{"text":" word"},"contentBlockIndex":0}}`),
	invoking("meta.llama3-8b-instruct-v1:0", 1, `{"prompt":"hi"}`,
		"", `{"generation":" word","prompt_token_count":null,"generation_token_count":null,"stop_reason":null}`),
	invoking("mistral.mistral-7b-instruct-v0:2", 1, `{"prompt":"hi"}`, "", `{"outputs":[{"text":" word","stop_reason":null}]}`),
	invoking("amazon.titan-text-express-v1", 1, `{"inputText":"hi"}`,
		"", `{"outputText":" word","index":0,"totalOutputTextTokenCount":null,"completionReason":null,"inputTextTokenCount":9}`),
}

// responding returns the format of OpenAI's Responses API.
func responding(delta string) tongue {
	return tongue{llm.Responses, "gpt-4o", "/v1/responses", `{"model":"gpt-4o","stream":true,"input":"hi"}`,
		"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_x\",\"object\":\"response\",\"status\":\"in_progress\",\"model\":\"gpt-4o\",\"output\":[],\"usage\":null}}\n\n",
		"event: response\ndata: " + delta + "\n\n", "", "", "tokens", 1}
}

// conversing returns the format of Bedrock's Converse API.
func conversing(model string, times int64, delta string) tongue {
	return tongue{llm.Converse, model, "/model/" + model + "/converse-stream", `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`,
		message("messageStart", `{"role":"assistant"}`), message("contentBlockDelta", `{"contentBlockIndex":0,"delta":`+delta+`}`), "", "", "tokens", times}
}

// invoking returns the format in which Bedrock wraps a vendor's events.
func invoking(model string, times int64, body, before, word string) tongue {
	if before != "" {
		before = chunk(before)
	}
	return tongue{llm.Invoke, model, "/model/" + model + "/invoke-with-response-stream", body, before, chunk(word), "", "", "tokens", times}
}

func chunk(words string) string {
	return message("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(words))+`","p":"abcdefghij"}`)
}

func message(event, payload string) string {
	var b strings.Builder
	if err := frame.WriteEvent(&b, event, []byte(payload)); err != nil {
		panic(err)
	}
	return b.String()
}

func (g *tongue) kind() string {
	if g.family == llm.Converse || g.family == llm.Invoke {
		return "application/vnd.amazon.eventstream"
	}
	return "text/event-stream"
}

// counting returns a policy whose limits show the usage.
func counting() weir.Policy {
	p := quick()
	for _, unit := range []string{"tokens", "output_tokens"} {
		p.Limits = append(p.Limits, plenty(unit))
	}
	return p
}

// plenty returns a quota that is never used up.
func plenty(unit string) limit.Limit {
	return limit.Limit{Name: unit, Unit: unit, Shape: limit.Calendar, Every: bucket.Month, Rate: bucket.Rate{Amount: 10_000_000}}
}

// A caller that leaves a stream before its usage is reported is charged for the output so far, in the provider's limits,
// the caller's limits, the ledger and the events.
func TestWhoLeavesAStreamPays(t *testing.T) {
	const words = 5000
	for _, way := range tongues {
		t.Run(fmt.Sprint(way.family, " ", way.model), func(t *testing.T) {
			var written atomic.Int64
			p := provider(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", way.kind())
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
			var heard atomic.Pointer[gateway.Used]
			o := gateway.Options{
				Family: way.family, Callers: callers(t, mine), Prices: price.BuiltIn(), Ledger: price.NewLedger(100),
				Events: gateway.Events{Used: func(u gateway.Used) { heard.Store(&u) }},
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
			got, err := io.CopyN(io.Discard, resp.Body, int64(len(way.before)+words*len(way.word)))
			if read = (got - int64(len(way.before))) / int64(len(way.word)); read < words {
				t.Fatalf("%d words, then %v", read, err)
			}
			_ = resp.Body.Close()
			b.calls.Wait()
			p.CloseClientConnections()
			enough := func(what string, got, times int64) {
				t.Helper()
				const unread = 32 << 10 / 4 // maximum number of tokens in transit that are not read word by word
				if got < times*read || got > times*(written.Load()+unread) {
					t.Errorf("%s: %d tokens are charged, %d words were read and %d written", what, got, read, written.Load())
				}
			}
			if way.unit != "" {
				enough("limit", 10_000_000-b.left("chat", way.unit), way.times)
			}
			for _, l := range o.Callers.Limits.Look(1).Limits {
				if l.Key == "ann" {
					enough("caller", 10_000_000-l.Level.Left, 1)
				}
			}
			u := heard.Load()
			if u == nil {
				t.Fatal("nobody heard of it")
			}
			enough("heard", u.Usage.Output, 1)
			for who, sum := range o.Ledger.All() {
				enough(fmt.Sprint("ledger of ", who), sum.Output, 1)
				if each, ok := o.Prices.Find(way.model); ok && sum.Cost < price.Amount(read)*each.Output {
					t.Errorf("it has cost %v, want at least %d words at %v", sum.Cost, read, each.Output)
				}
			}
		})
	}
}

// A caller that leaves a stream at its start is charged the estimate, in its quota and in the ledger.
func TestWhoLeavesAtOncePaysTheEstimate(t *testing.T) {
	for _, way := range tongues {
		t.Run(fmt.Sprint(way.family, " ", way.model), func(t *testing.T) {
			p := provider(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", way.kind())
				_, _ = io.WriteString(w, way.before+way.word)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			})
			mine := plenty("tokens")
			mine.Scope = "user"
			o := gateway.Options{Family: way.family, Callers: callers(t, mine), Prices: price.BuiltIn(), Ledger: price.NewLedger(100)}
			b := before(t, o, counting(), p.url())
			r, _ := http.NewRequest(http.MethodPost, b.weir.URL+"/chat"+way.path, strings.NewReader(way.body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("X-User", "ann")
			resp, err := http.DefaultClient.Do(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%v %v", resp, err)
			}
			if _, err := io.ReadFull(resp.Body, make([]byte, len(way.before)+len(way.word))); err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			b.calls.Wait()
			p.CloseClientConnections()
			want, _ := strconv.ParseInt(resp.Header.Get(gateway.EstimateHeader), 10, 64)
			if want < 10 {
				t.Fatalf("%d tokens were expected", want)
			}
			for _, l := range o.Callers.Limits.Look(1).Limits {
				if got := 10_000_000 - l.Level.Left; l.Key == "ann" && (got < want || got > want+1) { // one more word may have arrived
					t.Errorf("the quota: %d tokens, want %d", got, want)
				}
			}
			for who, sum := range o.Ledger.All() {
				if got := sum.Input + sum.Output; got < want || got > want+1 {
					t.Errorf("the ledger of %v: %d tokens, want %d", who, got, want)
				}
			}
		})
	}
}

// Impossible usage is ignored and has no price.
func TestUsageThatCannotBe(t *testing.T) {
	way := tongues[0]
	for _, said := range []string{"9000000000000000000", "9e18", "1e300", "-5", "-9000000000000000000", `"NaN"`, "30000000", `"many"`, "{}", "0", "null"} {
		t.Run(said, func(t *testing.T) {
			const words = 300
			for _, c := range []struct {
				streamed bool
				prompt   string
			}{{true, said}, {false, said}, {false, "7"}} {
				streamed := c.streamed
				p := provider(t, func(w http.ResponseWriter, r *http.Request) {
					if !streamed {
						w.Header().Set("Content-Type", "application/json")
						fmt.Fprintf(w, `{"id":"x","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":%s,"completion_tokens":%s}}`, strings.Repeat(" word", words), c.prompt, said)
						return
					}
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, strings.Repeat(way.word, words)+
						`data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+fmt.Sprintf(way.usage, said)+way.end)
				})
				o := gateway.Options{Prices: price.BuiltIn(), Ledger: price.NewLedger(100)}
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
					t.Errorf("%+v: %d tokens are charged for %d words", c, used, words)
				}
				for _, sum := range o.Ledger.All() {
					if sum.Output < 250 || sum.Output > 5000 || sum.Input > 5000 || sum.Cost > price.Dollar/10 {
						t.Errorf("%+v: the ledger has %+v", c, sum)
					}
				}
			}
		})
	}
}

// An upstream's trailers cannot set the cost of an answer.
func TestTrailersOfAModelSayNothingOfCosts(t *testing.T) {
	way := tongues[0]
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", way.kind())
		_, _ = io.WriteString(w, way.before+strings.Repeat(way.word, 5000)+"data: [DONE]\n\n")
		w.Header().Set(http.TrailerPrefix+gateway.CostHeader, "forged")
		w.Header().Set(http.TrailerPrefix+"X-Other", "theirs")
	})
	o := gateway.Options{Family: way.family, Callers: callers(t, plenty("tokens")), Prices: price.BuiltIn()}
	b := before(t, o, counting(), p.url())
	resp, err := http.Post(b.weir.URL+"/chat"+way.path, "application/json", strings.NewReader(way.body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	b.calls.Wait()
	if cost := resp.Trailer[gateway.CostHeader]; len(cost) > 1 || len(cost) == 1 && cost[0] == "forged" || resp.Trailer["X-Other"] != nil {
		t.Errorf("trailers %v", resp.Trailer)
	}
}
