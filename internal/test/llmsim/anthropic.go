package llmsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// anthropic implements messages, token counting and the list of models.
type anthropic struct{}

func (anthropic) authenticate(c *call) *failure {
	h := c.r.Header
	c.key = h.Get("X-Api-Key")
	if token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer "); ok && c.key == "" {
		c.key = token // of OAuth
	} else if ok {
		c.p.violate(c, "both x-api-key and authorization were sent")
	}
	if c.key == "" {
		return &failure{code: noKey, status: 401}
	}
	if h.Get("Anthropic-Version") == "" {
		return bad("", "anthropic-version: header is required")
	}
	return nil
}

type messagesBody struct {
	Model            string
	AnthropicVersion string `json:"anthropic_version"`
	MaxTokens        *int64 `json:"max_tokens"`
	System           json.RawMessage
	Messages         []struct {
		Role    string
		Content json.RawMessage
	}
	Stream     bool
	Tools      []anthropicTool
	ToolChoice json.RawMessage `json:"tool_choice"`
}

type anthropicTool struct {
	Name, Description string
	InputSchema       json.RawMessage `json:"input_schema"`
}

func (d anthropic) parse(c *call) *failure {
	if c.op == "models" {
		return nil
	}
	var b messagesBody
	if err := json.Unmarshal(c.body, &b); err != nil {
		return bad("", "the request body is not valid JSON: "+err.Error())
	}
	c.model, c.stream = b.Model, b.Stream
	switch {
	case b.Model == "":
		return bad("model", "model: Field required")
	case c.op == "messages" && b.MaxTokens == nil:
		return bad("max_tokens", "max_tokens: Field required")
	}
	return d.read(c, &b)
}

func (anthropic) read(c *call, b *messagesBody) *failure {
	if len(b.Messages) == 0 {
		return bad("messages", "messages: at least one message is required")
	}
	if b.MaxTokens != nil {
		if c.maxOutput = *b.MaxTokens; c.maxOutput < 1 {
			return bad("max_tokens", "max_tokens: must be greater than or equal to 1")
		}
	}
	var r reader
	c.spec, _ = c.p.model(c.model)
	c.q.System, _ = r.text(b.System)
	for i, m := range b.Messages {
		text, ok := r.text(m.Content)
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return bad("", fmt.Sprintf("messages.%d.role: must be user or assistant", i))
		case !ok || len(m.Content) == 0:
			return bad("", fmt.Sprintf("messages.%d.content: must be a string or a list of blocks", i))
		case m.Role == "user" && text != "":
			c.q.Text = text
		}
		r.messages++
	}
	for _, t := range b.Tools {
		c.q.Tools = append(c.q.Tools, t.Name)
	}
	r.bytes += toolBytes(b.Tools)
	c.q.MustCall = must(b.ToolChoice, c.q.Tools)
	r.measure(c)
	return nil
}

func (c *call) messageID() string { return fmt.Sprintf("msg_sim%012d", c.id) }

// messageUsage returns the usage with a number of output tokens.
func (c *call) messageUsage(out int64) string {
	return fmt.Sprintf(`{"input_tokens":%d,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":%d,"service_tier":"standard"}`, c.told.in, out)
}

func (c *call) message(content, stop string, out int64) string {
	usage := `,"usage":` + c.messageUsage(out)
	if c.silent {
		usage = ""
	}
	return fmt.Sprintf(`{"id":%s,"type":"message","role":"assistant","model":%s,"content":[%s],"stop_reason":%s,"stop_sequence":null%s}`,
		quote(c.messageID()), quote(c.model), content, stop, usage)
}

func (c *call) stopReason() string { return c.finish("end_turn", "max_tokens", "tool_use") }

func (d anthropic) whole(c *call) []byte {
	switch c.op {
	case "models":
		return d.models(c)
	case "count_tokens":
		return fmt.Appendf(nil, `{"input_tokens":%d}`, c.input)
	}
	content := fmt.Sprintf(`{"type":"text","text":%s}`, quote(c.text))
	if c.tool != nil {
		content = fmt.Sprintf(`{"type":"tool_use","id":"toolu_sim%d","name":%s,"input":%s}`, c.id, quote(c.tool.Name), c.text)
	}
	return []byte(c.message(content, quote(c.stopReason()), c.told.out))
}

// typed returns an event that also contains its type, as Anthropic's do.
func typed(name, rest string) []byte {
	return event(name, `{"type":`+quote(name)+rest+`}`)
}

func (anthropic) opening(c *call) [][]byte {
	block := `{"type":"text","text":""}`
	if c.tool != nil {
		block = fmt.Sprintf(`{"type":"tool_use","id":"toolu_sim%d","name":%s,"input":{}}`, c.id, quote(c.tool.Name))
	}
	return [][]byte{
		typed("message_start", `,"message":`+c.message("", "null", min(c.told.out, 1))),
		typed("content_block_start", `,"index":0,"content_block":`+block),
		typed("ping", ""),
	}
}

func (anthropic) piece(c *call, i int) []byte {
	delta := `{"type":"text_delta","text":` + quote(c.pieces[i]) + `}`
	if c.tool != nil {
		delta = `{"type":"input_json_delta","partial_json":` + quote(c.pieces[i]) + `}`
	}
	return typed("content_block_delta", `,"index":0,"delta":`+delta)
}

func (anthropic) closing(c *call) [][]byte {
	usage := fmt.Sprintf(`,"usage":{"output_tokens":%d}`, c.told.out)
	if c.silent {
		usage = ""
	}
	return [][]byte{
		typed("content_block_stop", `,"index":0`),
		typed("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":%s,"stop_sequence":null}%s`, quote(c.stopReason()), usage)),
		typed("message_stop", ""),
	}
}

func (anthropic) broken(c *call, f *failure) []byte {
	return typed("error", fmt.Sprintf(`,"error":{"type":%s,"message":%s},"request_id":"req_sim%d"`, quote(anthropicType(f.status)), quote(f.text()), c.id))
}

func (anthropic) spoilt(*call) []byte {
	return event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"text_`)
}
func (anthropic) ping(*call) []byte    { return typed("ping", "") }
func (anthropic) streams(*call) string { return "text/event-stream; charset=utf-8" }

func anthropicType(status int) string {
	switch status {
	case 400:
		return "invalid_request_error"
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 504:
		return "timeout_error"
	case 503, 529:
		return "overloaded_error"
	}
	return "api_error"
}

func (anthropic) refuse(c *call, f *failure, h http.Header) (int, []byte) {
	h.Set("Request-Id", fmt.Sprintf("req_sim%d", c.id))
	status, text := f.status, f.text()
	switch f.code {
	case noKey:
		text = "x-api-key header is required"
	case badKey, badSignature:
		text = "invalid x-api-key"
	case noModel:
		text = "model: " + c.model
	case noRoute:
		text = "Not Found"
	case broke:
		status, text = 400, "Your credit balance is too low to access the Anthropic API."
	case throttled:
		text = anthropicHint(f, h)
	}
	return status, fmt.Appendf(nil, `{"type":"error","error":{"type":%s,"message":%s},"request_id":"req_sim%d"}`, quote(anthropicType(status)), quote(text), c.id)
}

func anthropicHint(f *failure, h http.Header) string {
	if !f.noHint {
		h.Set("Retry-After", fmt.Sprint(ceil(f.hint, time.Second)))
	}
	return fmt.Sprintf("This request would exceed the rate limit of your organization of %d %s per %s.", f.hit.limit, f.hit.unit, f.hit.period())
}

func (anthropic) header(c *call, h http.Header) {
	h.Set("Request-Id", fmt.Sprintf("req_sim%d", c.id))
	h.Set("Anthropic-Organization-Id", "00000000-0000-4000-8000-000000000000")
}

// limitsAnthropic sets the headers of limits. Reset is the time at which all units are available. Large token numbers are
// rounded to thousands, and Tokens is the tightest limit.
func limitsAnthropic(m *meter, now time.Duration, wall time.Time, h http.Header) {
	tightest := m.tokens
	for _, g := range []*gauge{m.input, m.output} {
		if g != nil && (tightest == nil || g.room(now) < tightest.room(now)) {
			tightest = g
		}
	}
	for _, x := range []struct {
		name string
		g    *gauge
	}{{"Requests", m.requests}, {"Input-Tokens", m.input}, {"Output-Tokens", m.output}, {"Tokens", tightest}} {
		if x.g == nil {
			continue
		}
		limit, used, _ := x.g.facts(now)
		left := max(limit-used, 0)
		if x.name != "Requests" && limit >= 10_000 {
			left = (left + 500) / 1000 * 1000
		}
		name := "Anthropic-Ratelimit-" + x.name
		h.Set(name+"-Limit", fmt.Sprint(limit))
		h.Set(name+"-Remaining", fmt.Sprint(left))
		h.Set(name+"-Reset", wall.Add(x.g.full(now)+time.Second-1).UTC().Truncate(time.Second).Format(time.RFC3339))
	}
}
