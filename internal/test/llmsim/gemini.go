package llmsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// gemini implements generateContent of the Gemini API and of Vertex.
type gemini struct{}

func (gemini) authenticate(c *call) *failure {
	h := c.r.Header
	c.key = h.Get("X-Goog-Api-Key")
	if key := c.r.URL.Query().Get("key"); c.key == "" {
		c.key = key
	} else if key != "" {
		c.p.violate(c, "both x-goog-api-key and ?key= were sent")
	}
	token, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	switch vertex := strings.Contains(c.r.URL.Path, "/projects/"); {
	case ok && vertex:
		c.key = token
	case ok:
		c.p.violate(c, "a key of Gemini is no bearer token, except at Vertex")
	}
	if c.key == "" {
		return &failure{code: noKey, status: 403}
	}
	return nil
}

type geminiContent struct {
	Role  string
	Parts json.RawMessage
}

type geminiBody struct {
	Contents          []geminiContent
	SystemInstruction geminiContent
	SystemSnake       geminiContent `json:"system_instruction"`
	GenerationConfig  struct {
		MaxOutputTokens int64
	}
	Tools []struct {
		FunctionDeclarations []struct {
			Name, Description string
			Parameters        json.RawMessage
		}
	}
	ToolConfig struct {
		FunctionCallingConfig struct {
			Mode                 string
			AllowedFunctionNames []string
		}
	}
	GenerateContentRequest *geminiBody // of countTokens
}

func (d gemini) parse(c *call) *failure {
	if c.op == "models" {
		return nil
	}
	var b geminiBody
	if err := json.Unmarshal(c.body, &b); err != nil {
		return bad("", "Invalid JSON payload received. "+err.Error())
	}
	if b.GenerateContentRequest != nil {
		b = *b.GenerateContentRequest
	}
	if len(b.Contents) == 0 {
		return bad("contents", "* GenerateContentRequest.contents: contents is not specified")
	}
	return d.read(c, &b)
}

func (gemini) read(c *call, b *geminiBody) *failure {
	var r reader
	c.spec, _ = c.p.model(c.model)
	c.maxOutput = max(b.GenerationConfig.MaxOutputTokens, 0)
	for _, s := range []geminiContent{b.SystemInstruction, b.SystemSnake} {
		text, _ := r.text(s.Parts)
		c.q.System += text
	}
	for i, m := range b.Contents {
		text, ok := r.text(m.Parts)
		if !ok || len(m.Parts) == 0 {
			return bad("", fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i))
		}
		if m.Role != "model" && text != "" {
			c.q.Text = text
		}
		r.messages++
	}
	for _, t := range b.Tools {
		for _, f := range t.FunctionDeclarations {
			c.q.Tools = append(c.q.Tools, f.Name)
		}
	}
	r.bytes += toolBytes(b.Tools)
	if mode := b.ToolConfig.FunctionCallingConfig; mode.Mode == "ANY" {
		if names := append(mode.AllowedFunctionNames, c.q.Tools...); len(names) > 0 {
			c.q.MustCall = names[0]
		}
	}
	r.measure(c)
	return nil
}

// generated returns a response or a part of one. finish is "" before the end.
func (c *call) generated(part string, out int64, finish string) string {
	if finish != "" {
		finish = `,"finishReason":` + quote(finish)
	}
	usage := ""
	if !c.silent {
		usage = fmt.Sprintf(`,"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":%d,"totalTokenCount":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}]}`,
			c.told.in, out, c.told.in+out, c.told.in)
	}
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}]%s,"modelVersion":%s,"responseId":"sim%012d"}`,
		part, finish, usage, quote(c.model), c.id)
}

func (c *call) geminiPart(text string) string {
	if c.tool != nil {
		return fmt.Sprintf(`{"functionCall":{"name":%s,"args":%s}}`, quote(c.tool.Name), c.text)
	}
	return fmt.Sprintf(`{"text":%s}`, quote(text))
}

func (d gemini) whole(c *call) []byte {
	switch c.op {
	case "models":
		return d.models(c)
	case "count_tokens":
		return indent(fmt.Sprintf(`{"totalTokens":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}]}`, c.input, c.input))
	}
	return indent(c.generated(c.geminiPart(c.text), c.told.out, c.finish("STOP", "MAX_TOKENS", "STOP")))
}

// frame returns an event of a stream, or an element of an array.
func (c *call) frame(data string) []byte {
	if !c.array {
		return []byte("data: " + data + "\r\n\r\n")
	}
	c.seq++
	if c.seq == 1 {
		return []byte("[" + data)
	}
	return []byte("\n,\r\n" + data)
}

func (gemini) opening(*call) [][]byte { return nil }

// piece contains the usage so far in every event. A function call is one event.
func (gemini) piece(c *call, i int) []byte {
	if c.tool != nil {
		return nil
	}
	return c.frame(c.generated(c.geminiPart(c.pieces[i]), c.told.out*int64(i+1)/int64(len(c.pieces)), ""))
}

func (gemini) closing(c *call) [][]byte {
	last := c.frame(c.generated(c.geminiPart(""), c.told.out, c.finish("STOP", "MAX_TOKENS", "STOP")))
	if c.array {
		last = append(last, "\n]"...)
	}
	return [][]byte{last}
}

func (gemini) broken(c *call, f *failure) []byte {
	status := f.status
	if status == 529 {
		status = 503
	}
	return c.frame(googleError(status, f.text(), ""))
}

func (gemini) spoilt(c *call) []byte { return c.frame(`{"candidates":[{"content":{"par`) }
func (gemini) ping(*call) []byte     { return nil }

func (gemini) streams(c *call) string {
	if c.array {
		return "application/json; charset=UTF-8"
	}
	return "text/event-stream"
}

func (gemini) header(c *call, h http.Header) {
	h.Set("Server-Timing", fmt.Sprintf("gfet4t7; dur=%d", c.elapsed().Milliseconds()))
}

// googleError returns an error in the format of Google's services. details may be "".
func googleError(status int, text, details string) string {
	names := map[int]string{
		400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 413: "INVALID_ARGUMENT",
		429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	}
	name, ok := names[status]
	if !ok {
		name = "UNKNOWN"
	}
	if details != "" {
		details = `,"details":[` + details + `]`
	}
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s%s}}`, status, quote(text), quote(name), details)
}

func (gemini) refuse(c *call, f *failure, _ http.Header) (int, []byte) {
	status, text, details := f.status, f.text(), ""
	switch f.code {
	case noKey:
		status, text = 403, "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."
	case badKey, badSignature:
		status, text = 400, "API key not valid. Please pass a valid API key."
		details = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}`
	case noModel:
		text = fmt.Sprintf("models/%s is not found for API version v1beta, or is not supported for generateContent.", c.model)
	case noRoute:
		text = "Requested entity was not found."
	case broke:
		text = "Your prepayment credits are depleted."
	case throttled:
		text, details = c.quotaFailure(f)
	case broken:
		if status == 529 {
			status, text = 503, "The model is overloaded. Please try again later."
		}
	}
	return status, indent(googleError(status, text, details))
}

// quotaFailure returns Gemini's description of a limit. Gemini sends no rate limit headers.
func (c *call) quotaFailure(f *failure) (text, details string) {
	if f.noHint {
		return "Resource has been exhausted (e.g. check quota).", ""
	}
	h := f.hit
	metric, id := "generate_content_free_tier_requests", "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
	switch {
	case h.unit == "requests" && h.day:
		id = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
	case h.unit != "requests" && h.day:
		metric, id = "generate_content_free_tier_input_token_count", "GenerateContentInputTokensPerModelPerDay-FreeTier"
	case h.unit != "requests":
		metric, id = "generate_content_free_tier_input_token_count", "GenerateContentInputTokensPerModelPerMinute-FreeTier"
	}
	metric = "generativelanguage.googleapis.com/" + metric
	delay := c.retryDelay(f)
	text = fmt.Sprintf("You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: %s, limit: %d\nPlease retry in %s.", metric, h.limit, delay)
	details = fmt.Sprintf(`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":%s,"quotaId":%s,"quotaDimensions":{"location":"global","model":%s},"quotaValue":"%d"}]},`+
		`{"@type":"type.googleapis.com/google.rpc.Help","links":[{"description":"Learn more about Gemini API quotas","url":"https://ai.google.dev/gemini-api/docs/rate-limits"}]},`+
		`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":%s}`, quote(metric), quote(id), quote(c.model), h.limit, quote(delay))
	return text, details
}

// retryDelay is at most the time until the end of the minute, also for a daily quota.
func (c *call) retryDelay(f *failure) string {
	d := f.hint
	if f.hit.day && d > time.Minute {
		d = time.Duration(60-c.created.Second()) * time.Second
	}
	return fmt.Sprintf("%.9gs", roundUp(d, time.Millisecond).Seconds())
}
