package llmsim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// invoke is Bedrock's API with a separate format for each model: Anthropic's for Claude, Converse's for Nova, and Llama's for
// all others.
type invoke struct{ converse }

func (c *call) claude() bool { return strings.Contains(c.model, "anthropic.") }
func (c *call) nova() bool   { return strings.Contains(c.model, "amazon.nova") }

func (d invoke) parse(c *call) *failure {
	switch {
	case c.claude():
		return d.parseClaude(c)
	case c.nova():
		return d.converse.parse(c)
	}
	return d.parseLlama(c)
}

func (invoke) parseClaude(c *call) *failure {
	var b messagesBody
	if err := json.Unmarshal(c.body, &b); err != nil {
		return bad("", "Malformed input request, please reformat your input and try again.")
	}
	switch {
	case b.AnthropicVersion == "":
		return bad("anthropic_version", "anthropic_version: Field required")
	case b.MaxTokens == nil:
		return bad("max_tokens", "max_tokens: Field required")
	case b.Model != "" || b.Stream:
		return bad("", "extraneous key [model] or [stream] is not permitted, please reformat your input and try again.")
	}
	return anthropic{}.read(c, &b)
}

func (invoke) parseLlama(c *call) *failure {
	var b struct {
		Prompt    string
		MaxGenLen int64 `json:"max_gen_len"`
	}
	if err := json.Unmarshal(c.body, &b); err != nil || b.Prompt == "" {
		return bad("prompt", "Malformed input request: required key [prompt] not found, please reformat your input and try again.")
	}
	r := reader{bytes: len(b.Prompt), messages: 1}
	c.spec, _ = c.p.model(c.model)
	c.q.Text, c.maxOutput = b.Prompt, max(b.MaxGenLen, 0)
	r.measure(c)
	return nil
}

func (d invoke) whole(c *call) []byte {
	switch {
	case c.claude():
		return anthropic{}.whole(c)
	case c.nova():
		return d.converse.whole(c)
	}
	return fmt.Appendf(nil, `{"generation":%s%s,"stop_reason":%s}`, quote(c.text), c.llamaCounts(), quote(c.finish("stop", "length", "stop")))
}

func (c *call) llamaCounts() string {
	if c.silent {
		return ""
	}
	return fmt.Sprintf(`,"prompt_token_count":%d,"generation_token_count":%d`, c.told.in, c.told.out)
}

// wrap puts a model's event into a Bedrock event.
func wrap(data string) []byte {
	return awsEvent("chunk", `{"bytes":"`+base64.StdEncoding.EncodeToString([]byte(data))+`"`+padding+`}`)
}

// unwrapped returns the data of a server-sent event.
func unwrapped(e []byte) string {
	_, data, _ := strings.Cut(string(e), "data: ")
	return strings.TrimSpace(data)
}

// named returns a Nova event, whose name is a key.
func named(name, body string) []byte { return wrap(`{` + quote(name) + `:` + body + `}`) }

func (invoke) opening(c *call) (all [][]byte) {
	switch {
	case c.claude():
		for _, e := range (anthropic{}).opening(c)[:2] { // Bedrock sends no pings
			all = append(all, wrap(unwrapped(e)))
		}
	case c.nova():
		all = append(all, named("messageStart", `{"role":"assistant"}`))
	}
	return all
}

func (invoke) piece(c *call, i int) []byte {
	switch {
	case c.claude():
		return wrap(unwrapped(anthropic{}.piece(c, i)))
	case c.nova():
		return named("contentBlockDelta", `{"delta":{"text":`+quote(c.pieces[i])+`},"contentBlockIndex":0}`)
	}
	return wrap(`{"generation":` + quote(c.pieces[i]) + `,"prompt_token_count":null,"generation_token_count":null,"stop_reason":null}`)
}

// closing ends in the model's format, with Bedrock's count in the last event.
func (invoke) closing(c *call) (all [][]byte) {
	counted := ""
	if !c.silent {
		counted = fmt.Sprintf(`,"amazon-bedrock-invocationMetrics":{"inputTokenCount":%d,"outputTokenCount":%d,"invocationLatency":%d,"firstByteLatency":%d}`,
			c.told.in, c.told.out, c.elapsed().Milliseconds(), c.elapsed().Milliseconds())
	}
	switch {
	case c.claude():
		events := anthropic{}.closing(c)
		for _, e := range events[:len(events)-1] {
			all = append(all, wrap(unwrapped(e)))
		}
		return append(all, wrap(`{"type":"message_stop"`+counted+`}`))
	case c.nova():
		return [][]byte{
			named("contentBlockStop", `{"contentBlockIndex":0}`),
			named("messageStop", `{"stopReason":`+quote(c.stopReason())+`}`),
			wrap(`{"metadata":{` + strings.TrimPrefix(c.converseUsage(), ",") + `}` + counted + `}`),
		}
	}
	return [][]byte{wrap(`{"generation":""` + c.llamaCounts() + `,"stop_reason":` + quote(c.finish("stop", "length", "stop")) + counted + `}`)}
}

func (invoke) spoilt(*call) []byte { return wrap(`{"type":"content_block_delta","ind`) }

func (d invoke) header(c *call, h http.Header) {
	d.converse.header(c, h)
	h.Set("X-Amzn-Bedrock-Invocation-Latency", fmt.Sprint(c.elapsed().Milliseconds()))
	if !c.stream && !c.silent {
		h.Set("X-Amzn-Bedrock-Input-Token-Count", fmt.Sprint(c.told.in))
		h.Set("X-Amzn-Bedrock-Output-Token-Count", fmt.Sprint(c.told.out))
	}
}
