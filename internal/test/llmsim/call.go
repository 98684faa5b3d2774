package llmsim

import (
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// A call is one request, from its path to the last byte of its response.
type call struct {
	p    *Provider
	r    *http.Request
	body []byte

	family llm.Family
	op     string
	model  string
	spec   Model
	key    string // as received
	free   bool   // no limit applies
	stream bool
	usage  bool // OpenAI: the caller requested the usage of a stream
	array  bool // Gemini: a stream as a JSON array instead of events

	q         Question
	input     int64
	estimate  int64 // of input, as OpenAI computes it: 4 bytes per token
	maxOutput int64 // from the request; 0 means not specified

	id      int
	created time.Time
	begun   time.Duration
	at      *Attempt
	grant   *grant
	fault   *Fault // fault of the response

	text   string // the answer, or the arguments of tool
	tool   *ToolCall
	pieces []string
	cut    bool // truncated by max_tokens
	output int64
	told   tokens // usage in the response
	silent bool   // the response omits the usage
	seq    int    // number of the next event
	inputs []string
	dims   int
	base64 bool
}

// tokens are the usage in a response.
type tokens struct{ in, out int64 }

// accounting returns how the call is counted.
func (c *call) accounting() Accounting {
	if c.spec.Accounting != ByFamily {
		return c.spec.Accounting
	}
	switch c.family {
	case llm.Anthropic:
		return AsGenerated
	case llm.Gemini:
		return InputOnly
	case llm.Converse, llm.Invoke:
		return UpFront
	}
	return Estimated
}

// reserves returns the number of tokens to take at the start.
func (c *call) reserves(a Accounting) int64 {
	switch {
	case a == UpFront && c.maxOutput == 0:
		return c.input + int64(c.spec.MaxOutput)
	case a == UpFront:
		return c.input + c.maxOutput
	case a == Estimated || a == EstimatedFirst:
		return max(c.estimate, c.maxOutput)
	}
	return c.input
}

// compose creates the answer.
func (c *call) compose() {
	c.q.Input, c.q.Family, c.q.Model, c.q.Stream, c.q.Body = c.input, c.family, c.model, c.stream, c.body
	c.q.Key = c.p.keyName(c.key)
	c.q.MaxOutput = int64(c.spec.MaxOutput)
	if c.maxOutput > 0 {
		c.q.MaxOutput = min(c.maxOutput, c.q.MaxOutput)
	}
	reply := c.p.c.Answer(c.q)
	if reply.Tool != nil {
		c.tool = reply.Tool
		c.text = reply.Tool.Arguments
	} else {
		c.text, c.cut = lengthen(reply.Text, c.spec, c.q.MaxOutput)
	}
	c.pieces = cutUp(c.text, c.spec)
	c.output = count(c.text, c.spec)
	if reply.Output > 0 {
		c.output = reply.Output
	}
	if reply.Input > 0 {
		c.input = reply.Input
	}
	if len(c.pieces) == 0 && c.fault.is(NeverEnding) {
		c.pieces = []string{" "}
	}
	c.told = tokens{in: c.input, out: c.output}
}

// upTo returns the number of tokens in the first i pieces.
func (c *call) upTo(i int) int64 {
	if i >= len(c.pieces) {
		return c.output
	}
	return c.output * int64(i) / int64(len(c.pieces))
}

// A code is the kind of error of a request or of the provider.
type code uint8

const (
	badRequest code = iota
	noKey
	badKey
	badSignature
	noRoute
	noModel
	throttled
	broke
	broken // the provider failed; status has the kind
)

// A failure is an error, which each family writes in its format.
type failure struct {
	code    code
	status  int
	message string
	param   string
	hit     *hit
	hint    time.Duration
	noHint  bool
	m       *meter // meter of the limit, if not the call's
}

func bad(param, message string) *failure {
	return &failure{code: badRequest, status: 400, param: param, message: message}
}
