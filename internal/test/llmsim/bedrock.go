package llmsim

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// converse is Bedrock's API that is common to all models.
type converse struct{}

var (
	credential = regexp.MustCompile(`^([A-Za-z0-9]+)/(\d{8})/([a-z0-9-]+)/(bedrock)/aws4_request$`)
	signature  = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// authenticate accepts a Signature Version 4 or a Bedrock API key.
func (converse) authenticate(c *call) *failure {
	auth := c.r.Header.Get("Authorization")
	if token, ok := strings.CutPrefix(auth, "Bearer "); ok && token != "" {
		c.key = token
		return nil
	}
	if auth == "" {
		return &failure{code: noKey, status: 403}
	}
	what := c.signed(auth)
	if what == "" && c.p.c.Verify != nil {
		r := c.r.Clone(c.r.Context())
		r.Body = readCloser{bytes.NewReader(c.body)}
		if err := c.p.c.Verify(r); err != nil {
			what = err.Error()
		}
	}
	if what != "" {
		return &failure{code: badSignature, status: 403, message: what}
	}
	return nil
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// signed sets the key from a signature and describes what is malformed.
func (c *call) signed(auth string) string {
	rest, ok := strings.CutPrefix(auth, "AWS4-HMAC-SHA256 ")
	if !ok {
		return "the scheme is not AWS4-HMAC-SHA256"
	}
	field := map[string]string{}
	for _, p := range strings.Split(rest, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		field[k] = v
	}
	scope := credential.FindStringSubmatch(field["Credential"])
	if scope == nil {
		return "the credential's scope is not KEY/DATE/REGION/bedrock/aws4_request"
	}
	c.key = scope[1]
	names := strings.Split(field["SignedHeaders"], ";")
	date := c.r.Header.Get("X-Amz-Date")
	said := c.r.Header.Get("X-Amz-Content-Sha256")
	sum := sha256.Sum256(c.body)
	switch {
	case !signature.MatchString(field["Signature"]):
		return "the signature is not 64 hexadecimal digits"
	case !slices.IsSorted(names) || !slices.Contains(names, "host") && !slices.Contains(names, ":authority"):
		return "the signed headers are not sorted, or the host is not among them"
	case !strings.HasPrefix(date, scope[2]+"T"):
		return "x-amz-date is not of the scope's day"
	case said != "" && said != "UNSIGNED-PAYLOAD" && said != hex.EncodeToString(sum[:]):
		return "x-amz-content-sha256 is not the body's"
	case c.r.Header.Get("X-Amz-Security-Token") != "" && !slices.Contains(names, "x-amz-security-token"):
		return "x-amz-security-token is not signed"
	}
	return ""
}

type converseBody struct {
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
	System          json.RawMessage
	InferenceConfig struct{ MaxTokens *int64 }
	ToolConfig      struct {
		Tools []struct {
			ToolSpec struct {
				Name, Description string
				InputSchema       json.RawMessage
			}
		}
		ToolChoice struct {
			Any  *struct{}
			Tool struct{ Name string }
		}
	}
}

func (d converse) parse(c *call) *failure {
	if c.op == "models" {
		return nil
	}
	var b converseBody
	if err := json.Unmarshal(c.body, &b); err != nil {
		return bad("", "the request could not be read: "+err.Error())
	}
	if len(b.Messages) == 0 {
		return bad("messages", "A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	if b.Messages[0].Role != "user" {
		return bad("messages", "A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	if most := b.InferenceConfig.MaxTokens; most != nil {
		if c.maxOutput = *most; c.maxOutput < 1 {
			return bad("inferenceConfig.maxTokens", "1 validation error detected: Value at 'inferenceConfig.maxTokens' failed to satisfy constraint: Member must have value greater than or equal to 1")
		}
	}
	return d.read(c, &b)
}

func (converse) read(c *call, b *converseBody) *failure {
	var r reader
	c.spec, _ = c.p.model(c.model)
	c.q.System, _ = r.text(b.System)
	for i, m := range b.Messages {
		var list []json.RawMessage
		if json.Unmarshal(m.Content, &list) != nil {
			return bad("messages", fmt.Sprintf("messages.%d.content must be a list of blocks", i))
		}
		text, _ := r.text(m.Content)
		if m.Role == "user" && text != "" {
			c.q.Text = text
		}
		r.messages++
	}
	for _, t := range b.ToolConfig.Tools {
		c.q.Tools = append(c.q.Tools, t.ToolSpec.Name)
	}
	r.bytes += toolBytes(b.ToolConfig.Tools)
	c.q.MustCall = b.ToolConfig.ToolChoice.Tool.Name
	if b.ToolConfig.ToolChoice.Any != nil && len(c.q.Tools) > 0 {
		c.q.MustCall = c.q.Tools[0]
	}
	r.measure(c)
	return nil
}

func (c *call) converseUsage() string {
	if c.silent {
		return ""
	}
	return fmt.Sprintf(`,"usage":{"inputTokens":%d,"outputTokens":%d,"totalTokens":%d,"cacheReadInputTokens":0,"cacheWriteInputTokens":0}`, c.told.in, c.told.out, c.told.in+c.told.out)
}

func (c *call) metrics() string {
	return fmt.Sprintf(`"metrics":{"latencyMs":%d}`, c.elapsed().Milliseconds())
}

func (converse) whole(c *call) []byte {
	if c.op == "models" {
		return []byte(`{"modelSummaries":[]}`)
	}
	block := fmt.Sprintf(`{"text":%s}`, quote(c.text))
	if c.tool != nil {
		block = fmt.Sprintf(`{"toolUse":{"input":%s,"name":%s,"toolUseId":"tooluse_sim%d"}}`, c.text, quote(c.tool.Name), c.id)
	}
	return fmt.Appendf(nil, `{%s,"output":{"message":{"content":[%s],"role":"assistant"}},"stopReason":%s%s}`,
		c.metrics(), block, quote(c.stopReason()), c.converseUsage())
}

// padding is added by Bedrock to hide the length of events.
const padding = `,"p":"abcdefghijklm"`

// message returns a message of an AWS event stream.
func message(payload string, headers ...string) []byte {
	m := eventstream.Message{Payload: []byte(payload)}
	for i := 0; i < len(headers); i += 2 {
		m.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		panic(fmt.Sprintf("llmsim: an event cannot be written: %v", err))
	}
	return b.Bytes()
}

func awsEvent(name, payload string) []byte {
	return message(payload, ":event-type", name, ":content-type", "application/json", ":message-type", "event")
}

func (converse) opening(c *call) [][]byte {
	all := [][]byte{awsEvent("messageStart", `{"role":"assistant"`+padding+`}`)}
	if c.tool != nil {
		all = append(all, awsEvent("contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":0,"start":{"toolUse":{"name":%s,"toolUseId":"tooluse_sim%d"}}%s}`, quote(c.tool.Name), c.id, padding)))
	}
	return all
}

func (converse) piece(c *call, i int) []byte {
	delta := fmt.Sprintf(`{"text":%s}`, quote(c.pieces[i]))
	if c.tool != nil {
		delta = fmt.Sprintf(`{"toolUse":{"input":%s}}`, quote(c.pieces[i]))
	}
	return awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":`+delta+padding+`}`)
}

func (converse) closing(c *call) [][]byte {
	return [][]byte{
		awsEvent("contentBlockStop", `{"contentBlockIndex":0`+padding+`}`),
		awsEvent("messageStop", `{"stopReason":`+quote(c.stopReason())+padding+`}`),
		awsEvent("metadata", `{`+c.metrics()+c.converseUsage()+padding+`}`),
	}
}

func (converse) broken(c *call, f *failure) []byte {
	name := map[int]string{
		400: "validationException", 424: "modelStreamErrorException", 429: "throttlingException", 408: "modelTimeoutException",
		503: "serviceUnavailableException", 529: "serviceUnavailableException",
	}[f.status]
	if name == "" {
		name = "internalServerException"
	}
	return message(`{"message":`+quote(f.text())+`}`, ":exception-type", name, ":content-type", "application/json", ":message-type", "exception")
}

func (converse) spoilt(*call) []byte {
	return awsEvent("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"te`)
}
func (converse) ping(*call) []byte    { return nil }
func (converse) streams(*call) string { return "application/vnd.amazon.eventstream" }

func (converse) header(c *call, h http.Header) { h.Set("X-Amzn-Requestid", c.awsID()) }

func (c *call) awsID() string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", c.id) }

func awsCode(status int) string {
	switch status {
	case 400, 413:
		return "ValidationException"
	case 403:
		return "AccessDeniedException"
	case 404:
		return "ResourceNotFoundException"
	case 408:
		return "ModelTimeoutException"
	case 424:
		return "ModelErrorException"
	case 429:
		return "ThrottlingException"
	case 502, 503:
		return "ServiceUnavailableException"
	}
	return "InternalServerException"
}

func (converse) refuse(c *call, f *failure, h http.Header) (int, []byte) {
	status, text, code := f.status, f.text(), ""
	switch f.code {
	case noKey:
		code, text = "MissingAuthenticationTokenException", "Missing Authentication Token"
	case badKey:
		status, code, text = 403, "UnrecognizedClientException", "The security token included in the request is invalid."
	case badSignature:
		code, text = "InvalidSignatureException", "The request signature we calculated does not match the signature you provided."
	case noModel:
		status, text = 400, "The provided model identifier is invalid."
	case noRoute:
		code, text = "UnknownOperationException", ""
	case broke:
		status, code, text = 400, "ServiceQuotaExceededException", "Your request exceeds the service quota for your account."
	case throttled:
		text = awsThrottled(f.hit)
	case broken:
		if status == 529 {
			status = 503
		}
	}
	if code == "" {
		code = awsCode(status)
	}
	h.Set("X-Amzn-Errortype", code+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	h.Set("X-Amzn-Requestid", c.awsID())
	return status, []byte(`{"message":` + quote(text) + `}`)
}

func awsThrottled(h *hit) string {
	unit := "requests"
	if h.unit != "requests" {
		unit = "tokens"
	}
	if h.day {
		unit += " per day"
	}
	return "Too many " + unit + ", please wait before trying again."
}
