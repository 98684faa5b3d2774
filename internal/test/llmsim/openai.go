package llmsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// openAI implements chat completions, embeddings and the list of models.
type openAI struct{}

func (openAI) authenticate(c *call) *failure {
	h := c.r.Header
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key"} {
		if h.Get(name) != "" {
			c.p.violate(c, "the key of OpenAI is in the field %s", name)
		}
	}
	token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	if !ok || token == "" {
		return &failure{code: noKey, status: 401}
	}
	c.key = token
	return nil
}

// A tool is a callable tool of chat completions or responses.
type tool struct {
	Type       string
	Name       string // of responses
	Function   struct{ Name string }
	Parameters json.RawMessage
}

func (t tool) name() string { return t.Name + t.Function.Name }

// must returns the tool that tool_choice requires, or the first if any is allowed.
func must(choice json.RawMessage, names []string) string {
	var word string
	var one struct {
		Type, Name string
		Function   struct{ Name string }
	}
	if json.Unmarshal(choice, &word) == nil && (word == "required" || word == "any") {
		one.Type = "any"
	} else if json.Unmarshal(choice, &one) != nil {
		return ""
	}
	switch name := one.Name + one.Function.Name; {
	case name != "":
		return name
	case one.Type == "any" && len(names) > 0:
		return names[0]
	}
	return ""
}

type chatBody struct {
	Model    string
	Messages []struct {
		Role      string
		Content   json.RawMessage
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	Stream        bool
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           int64 `json:"max_tokens"`
	MaxCompletionTokens int64 `json:"max_completion_tokens"`
	Tools               []tool
	ToolChoice          json.RawMessage `json:"tool_choice"`
}

func (d openAI) parse(c *call) *failure {
	switch c.op {
	case "models":
		return nil
	case "embeddings":
		return d.parseEmbeddings(c)
	}
	var b chatBody
	if err := json.Unmarshal(c.body, &b); err != nil {
		return bad("", "the JSON of the request body could not be read: "+err.Error())
	}
	c.model, c.stream, c.maxOutput = b.Model, b.Stream, max(b.MaxTokens, b.MaxCompletionTokens)
	c.usage = b.StreamOptions != nil && b.StreamOptions.IncludeUsage
	switch {
	case b.Model == "":
		return bad("model", "you must provide a model parameter")
	case len(b.Messages) == 0:
		return bad("messages", "Missing required parameter: 'messages'.")
	case b.StreamOptions != nil && !b.Stream:
		return bad("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case b.MaxTokens > 0 && b.MaxCompletionTokens > 0:
		return bad("max_tokens", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case b.MaxTokens < 0 || b.MaxCompletionTokens < 0:
		return bad("max_tokens", "Invalid 'max_tokens': integer below minimum value.")
	}
	return d.read(c, &b)
}

func (openAI) read(c *call, b *chatBody) *failure {
	var r reader
	spec, _ := c.p.model(c.model)
	c.spec = spec
	for i, m := range b.Messages {
		text, ok := r.text(m.Content)
		if !ok || m.Role == "" {
			return bad(fmt.Sprintf("messages[%d]", i), fmt.Sprintf("Invalid value for 'messages[%d]': a role and a content that is a string or a list are wanted.", i))
		}
		r.messages++
		r.bytes += len(m.ToolCalls)
		switch m.Role {
		case "system", "developer":
			c.q.System = text
		case "user":
			c.q.Text = text
		}
	}
	for _, t := range b.Tools {
		c.q.Tools = append(c.q.Tools, t.name())
	}
	r.bytes += toolBytes(b.Tools)
	c.q.MustCall = must(b.ToolChoice, c.q.Tools)
	r.measure(c)
	return nil
}

func toolBytes[T any](tools []T) int {
	if len(tools) == 0 {
		return 0
	}
	b, err := json.Marshal(tools)
	if err != nil {
		return 0
	}
	return len(b)
}

func (c *call) chatID() string { return fmt.Sprintf("chatcmpl-sim%012d", c.id) }

func (c *call) finish(stop, length, tool string) string {
	switch {
	case c.tool != nil:
		return tool
	case c.cut:
		return length
	}
	return stop
}

func (c *call) chatUsage() string {
	if c.silent {
		return "null"
	}
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},`+
		`"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		c.told.in, c.told.out, c.told.in+c.told.out)
}

func (d openAI) whole(c *call) []byte {
	switch c.op {
	case "models":
		return d.models(c)
	case "embeddings":
		return d.embeddings(c)
	}
	message := fmt.Sprintf(`{"role":"assistant","content":%s,"refusal":null,"annotations":[]}`, quote(c.text))
	if c.tool != nil {
		message = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_sim%d","type":"function","function":{"name":%s,"arguments":%s}}],"refusal":null,"annotations":[]}`,
			c.id, quote(c.tool.Name), quote(c.text))
	}
	usage := `,"usage":` + c.chatUsage()
	if c.silent {
		usage = ""
	}
	return indent(fmt.Sprintf(`{"id":%s,"object":"chat.completion","created":%d,"model":%s,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%s}]%s,"service_tier":"default","system_fingerprint":"fp_llmsim"}`,
		quote(c.chatID()), c.created.Unix(), quote(c.model), message, quote(c.finish("stop", "length", "tool_calls")), usage))
}

// chunk returns an event of a stream with choices.
func (c *call) chunk(choices, usage string) []byte {
	more := ""
	if c.usage {
		more = `,"usage":` + usage
	}
	return event("", fmt.Sprintf(`{"id":%s,"object":"chat.completion.chunk","created":%d,"model":%s,"service_tier":"default","system_fingerprint":"fp_llmsim","choices":[%s]%s}`,
		quote(c.chatID()), c.created.Unix(), quote(c.model), choices, more))
}

func (c *call) delta(delta, finish string) []byte {
	return c.chunk(fmt.Sprintf(`{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}`, delta, finish), "null")
}

func (openAI) opening(c *call) [][]byte {
	if c.tool != nil {
		return [][]byte{c.delta(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_sim%d","type":"function","function":{"name":%s,"arguments":""}}],"refusal":null}`,
			c.id, quote(c.tool.Name)), "null")}
	}
	return [][]byte{c.delta(`{"role":"assistant","content":"","refusal":null}`, "null")}
}

func (openAI) piece(c *call, i int) []byte {
	if c.tool != nil {
		return c.delta(fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}`, quote(c.pieces[i])), "null")
	}
	return c.delta(fmt.Sprintf(`{"content":%s}`, quote(c.pieces[i])), "null")
}

func (openAI) closing(c *call) [][]byte {
	all := [][]byte{c.delta("{}", quote(c.finish("stop", "length", "tool_calls")))}
	if c.usage && !c.silent {
		all = append(all, c.chunk("", c.chatUsage()))
	}
	return append(all, event("", "[DONE]"))
}

func (openAI) broken(c *call, f *failure) []byte {
	kind, code := "server_error", "null"
	if f.status == 429 {
		kind, code = "tokens", `"rate_limit_exceeded"`
	}
	return event("", fmt.Sprintf(`{"error":{"message":%s,"type":%s,"param":null,"code":%s}}`, quote(f.text()), quote(kind), code))
}

func (openAI) spoilt(*call) []byte  { return event("", `{"id":"chatcmpl-sim","object":"chat.comp`) }
func (openAI) ping(*call) []byte    { return nil }
func (openAI) streams(*call) string { return "text/event-stream; charset=utf-8" }
func (openAI) refuse(c *call, f *failure, h http.Header) (int, []byte) {
	return refuseOpenAI(c, f, h)
}

// text returns the default text of an error.
func (f *failure) text() string {
	switch {
	case f.message != "":
		return f.message
	case f.status == 429:
		return "The rate limit was reached while the answer was written."
	case f.status == 529 || f.status == 503:
		return "Overloaded"
	}
	return "The server had an error while processing the request."
}

func refuseOpenAI(c *call, f *failure, h http.Header) (int, []byte) {
	h.Set("X-Request-Id", fmt.Sprintf("req_sim%d", c.id))
	status, kind, param, code, text := f.status, "invalid_request_error", "null", "null", f.text()
	if f.param != "" {
		param = quote(f.param)
	}
	switch f.code {
	case noKey:
		text = "You didn't provide an API key: it belongs into an Authorization header (Authorization: Bearer KEY)."
	case badKey, badSignature:
		text, code = "Incorrect API key provided.", `"invalid_api_key"`
	case noModel:
		text, code = fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", c.model), `"model_not_found"`
	case noRoute:
		text = fmt.Sprintf("Invalid URL (%s %s)", c.r.Method, c.r.URL.Path)
	case broke:
		kind, code = "insufficient_quota", `"insufficient_quota"`
		text = "You exceeded your current quota, please check your plan and billing details."
	case throttled:
		kind, code = f.hit.kind(), `"rate_limit_exceeded"`
		text = openAIHint(c, f, h)
	case broken:
		kind = "server_error"
		if status == 529 {
			status = 503
		}
	}
	return status, indent(fmt.Sprintf(`{"error":{"message":%s,"type":%s,"param":%s,"code":%s}}`, quote(text), quote(kind), param, code))
}

// kind returns the limit's unit in OpenAI's terms: requests or tokens.
func (h *hit) kind() string {
	if h.unit == "requests" {
		return "requests"
	}
	return "tokens"
}

// openAIHint sets the time to retry in the header and in the text.
func openAIHint(c *call, f *failure, h http.Header) string {
	x := f.hit
	short := map[bool]string{true: "R", false: "T"}[x.kind() == "requests"]
	period := map[bool]string{true: "day", false: "min"}[x.day]
	of := fmt.Sprintf("%s on %s per %s (%sP%s)", c.model, x.kind(), period, short, strings.ToUpper(period[:1]))
	if x.never {
		return fmt.Sprintf("Request too large for %s: Limit %d, Requested %d. The input or output tokens must be reduced in order to run successfully.", of, x.limit, x.requested)
	}
	text := fmt.Sprintf("Rate limit reached for %s: Limit %d, Used %d, Requested %d.", of, x.limit, x.used, x.requested)
	if f.noHint {
		return text
	}
	h.Set("Retry-After-Ms", fmt.Sprint(ceil(f.hint, time.Millisecond)))
	h.Set("Retry-After", fmt.Sprint(ceil(f.hint, time.Second)))
	return text + fmt.Sprintf(" Please try again in %v.", roundUp(f.hint, time.Millisecond))
}

// ceil returns the number of units in a duration, rounded up.
func ceil(d, unit time.Duration) int64 { return int64((max(d, 0) + unit - 1) / unit) }

func roundUp(d, unit time.Duration) time.Duration { return time.Duration(ceil(d, unit)) * unit }

func (openAI) header(c *call, h http.Header) { headerOpenAI(c, h) }

func headerOpenAI(c *call, h http.Header) {
	h.Set("X-Request-Id", fmt.Sprintf("req_sim%d", c.id))
	h.Set("Openai-Organization", "org-sim")
	h.Set("Openai-Version", "2020-10-01")
	h.Set("Openai-Processing-Ms", fmt.Sprint(c.elapsed().Milliseconds()))
}

// limitsOpenAI sets the headers of limits. Reset is the time until all units are available, in Go's format.
func limitsOpenAI(m *meter, now time.Duration, h http.Header) {
	for _, x := range []struct {
		name string
		g    *gauge
	}{{"Requests", m.requests}, {"Tokens", m.tokens}} {
		if x.g == nil {
			continue
		}
		limit, used, _ := x.g.facts(now)
		h.Set("X-Ratelimit-Limit-"+x.name, fmt.Sprint(limit))
		h.Set("X-Ratelimit-Remaining-"+x.name, fmt.Sprint(max(limit-used, 0)))
		h.Set("X-Ratelimit-Reset-"+x.name, roundUp(x.g.full(now), time.Millisecond).String())
	}
}
