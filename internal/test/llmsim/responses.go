package llmsim

import (
	"encoding/json"
	"fmt"
)

// responses is OpenAI's newer API.
type responses struct{ openAI }

type responsesBody struct {
	Model           string
	Input           json.RawMessage
	Instructions    string
	MaxOutputTokens int64 `json:"max_output_tokens"`
	Stream          bool
	Tools           []tool
	ToolChoice      json.RawMessage `json:"tool_choice"`
}

// An item is an element of the input: a message, or the result of a function.
type item struct {
	Type, Role string
	Content    json.RawMessage
	Output     json.RawMessage
	Arguments  string
}

func (d responses) parse(c *call) *failure {
	var b responsesBody
	if err := json.Unmarshal(c.body, &b); err != nil {
		return bad("", "the JSON of the request body could not be read: "+err.Error())
	}
	c.model, c.stream, c.maxOutput = b.Model, b.Stream, b.MaxOutputTokens
	switch {
	case b.Model == "":
		return bad("model", "Missing required parameter: 'model'.")
	case len(b.Input) == 0 || string(b.Input) == "null":
		return bad("input", "Missing required parameter: 'input'.")
	case b.MaxOutputTokens < 0:
		return bad("max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value.")
	}
	c.spec, _ = c.p.model(c.model)
	c.q.System = b.Instructions
	for _, t := range b.Tools {
		c.q.Tools = append(c.q.Tools, t.name())
	}
	c.q.MustCall = must(b.ToolChoice, c.q.Tools)
	return d.read(c, &b)
}

func (responses) read(c *call, b *responsesBody) *failure {
	r := reader{bytes: len(b.Instructions) + toolBytes(b.Tools)}
	var items []item
	if json.Unmarshal(b.Input, &c.q.Text) == nil {
		r.bytes += len(c.q.Text)
		r.messages++
	} else if json.Unmarshal(b.Input, &items) != nil {
		return bad("input", "Invalid type for 'input': expected a string or a list.")
	}
	for i, x := range items {
		text, ok := r.text(x.Content)
		if !ok {
			return bad(fmt.Sprintf("input[%d]", i), fmt.Sprintf("Invalid type for 'input[%d].content'.", i))
		}
		r.text(x.Output)
		r.bytes += len(x.Arguments)
		r.messages++
		if x.Role == "user" {
			c.q.Text = text
		}
	}
	r.measure(c)
	return nil
}

// response returns the object of most events, in one of its states.
func (c *call) response(status, output, failure string) string {
	usage := "null"
	if status != "in_progress" && status != "failed" && !c.silent {
		usage = fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`,
			c.told.in, c.told.out, c.told.in+c.told.out)
	}
	details, most, instructions := "null", "null", "null"
	if status == "incomplete" {
		details = `{"reason":"max_output_tokens"}`
	}
	if c.maxOutput > 0 {
		most = fmt.Sprint(c.maxOutput)
	}
	if c.q.System != "" {
		instructions = quote(c.q.System)
	}
	return fmt.Sprintf(`{"id":"resp_sim%012d","object":"response","created_at":%d,"status":%s,"background":false,"error":%s,"incomplete_details":%s,`+
		`"instructions":%s,"max_output_tokens":%s,"max_tool_calls":null,"model":%s,"output":[%s],"parallel_tool_calls":true,"previous_response_id":null,`+
		`"reasoning":{"effort":null,"summary":null},"service_tier":"default","store":true,"temperature":1.0,"text":{"format":{"type":"text"}},`+
		`"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":%s,"user":null,"metadata":{}}`,
		c.id, c.created.Unix(), quote(status), failure, details, instructions, most, quote(c.model), output, usage)
}

// item returns the only output item, in one of its states.
func (c *call) item(status, text string) string {
	if c.tool != nil {
		return fmt.Sprintf(`{"id":%s,"type":"function_call","status":%s,"arguments":%s,"call_id":"call_sim%d","name":%s}`,
			quote(c.itemID()), quote(status), quote(text), c.id, quote(c.tool.Name))
	}
	parts := ""
	if status != "in_progress" {
		parts = textPart(text)
	}
	return fmt.Sprintf(`{"id":%s,"type":"message","status":%s,"content":[%s],"role":"assistant"}`, quote(c.itemID()), quote(status), parts)
}

func textPart(text string) string {
	return fmt.Sprintf(`{"type":"output_text","annotations":[],"logprobs":[],"text":%s}`, quote(text))
}

func (c *call) itemID() string {
	if c.tool != nil {
		return fmt.Sprintf("fc_sim%012d", c.id)
	}
	return fmt.Sprintf("msg_sim%012d", c.id)
}

func (c *call) state() string { return c.finish("completed", "incomplete", "completed") }

func (responses) whole(c *call) []byte {
	return indent(c.response(c.state(), c.item(c.state(), c.text), "null"))
}

// numbered returns an event with its sequence number.
func (c *call) numbered(name, rest string) []byte {
	e := event(name, fmt.Sprintf(`{"type":%s,"sequence_number":%d%s}`, quote(name), c.seq, rest))
	c.seq++
	return e
}

// inItem returns the event's position in the output.
func (c *call) inItem() string {
	where := fmt.Sprintf(`,"item_id":%s,"output_index":0`, quote(c.itemID()))
	if c.tool == nil {
		where += `,"content_index":0`
	}
	return where
}

func (responses) opening(c *call) [][]byte {
	all := [][]byte{
		c.numbered("response.created", `,"response":`+c.response("in_progress", "", "null")),
		c.numbered("response.in_progress", `,"response":`+c.response("in_progress", "", "null")),
		c.numbered("response.output_item.added", `,"output_index":0,"item":`+c.item("in_progress", "")),
	}
	if c.tool == nil {
		all = append(all, c.numbered("response.content_part.added", c.inItem()+`,"part":`+textPart("")))
	}
	return all
}

func (responses) piece(c *call, i int) []byte {
	if c.tool != nil {
		return c.numbered("response.function_call_arguments.delta", c.inItem()+`,"delta":`+quote(c.pieces[i]))
	}
	return c.numbered("response.output_text.delta", c.inItem()+`,"delta":`+quote(c.pieces[i])+`,"logprobs":[]`)
}

func (responses) closing(c *call) [][]byte {
	var all [][]byte
	if c.tool != nil {
		all = append(all, c.numbered("response.function_call_arguments.done", c.inItem()+`,"name":`+quote(c.tool.Name)+`,"arguments":`+quote(c.text)))
	} else {
		all = append(all, c.numbered("response.output_text.done", c.inItem()+`,"text":`+quote(c.text)+`,"logprobs":[]`),
			c.numbered("response.content_part.done", c.inItem()+`,"part":`+textPart(c.text)))
	}
	done := c.item(c.state(), c.text)
	return append(all, c.numbered("response.output_item.done", `,"output_index":0,"item":`+done),
		c.numbered("response."+c.state(), `,"response":`+c.response(c.state(), done, "null")))
}

// broken returns an error event before the first piece, and otherwise a failed response. The provider has both forms.
func (responses) broken(c *call, f *failure) []byte {
	code := "server_error"
	if f.status == 429 {
		code = "rate_limit_exceeded"
	}
	if c.at.Output == 0 {
		return c.numbered("error", fmt.Sprintf(`,"code":%s,"message":%s,"param":null`, quote(code), quote(f.text())))
	}
	why := fmt.Sprintf(`{"code":%s,"message":%s}`, quote(code), quote(f.text()))
	return c.numbered("response.failed", `,"response":`+c.response("failed", "", why))
}

func (responses) spoilt(*call) []byte {
	return event("response.output_text.delta", `{"type":"response.output_text.delta","sequence_nu`)
}
