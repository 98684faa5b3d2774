package llmsim

import (
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// A call is one request, from its path to the last byte of its answer.
type call struct {
	p    *Provider
	r    *http.Request
	body []byte

	family llm.Family
	op     string
	model  string
	spec   Model
	key    string // as it came
	free   bool   // nothing limits it
	stream bool
	usage  bool // OpenAI: the caller asked a stream for its usage
	array  bool // Gemini: a stream as a JSON array, not as events

	q         Question
	input     int64
	estimate  int64 // of input, as OpenAI makes it: 4 bytes a token
	maxOutput int64 // as the request says; 0 means that it does not

	id      int
	created time.Time
	begun   time.Duration
	at      *Attempt
	grant   *grant
	fault   *Fault // that befalls the answer

	text   string // to be answered, or the arguments of tool
	tool   *ToolCall
	pieces []string
	cut    bool // by max_tokens
	output int64
	told   tokens // what the answer says was used
	silent bool   // it does not say
	seq    int    // number of the next event
	inputs []string
	dims   int
	base64 bool
}

// tokens are what an answer says was used.
type tokens struct{ in, out int64 }

// accounting is how the call is counted.
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

// reserves is how many tokens are taken at the start.
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

// compose decides what is answered.
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

// upTo is how many tokens there are in the first i pieces.
func (c *call) upTo(i int) int64 {
	if i >= len(c.pieces) {
		return c.output
	}
	return c.output * int64(i) / int64(len(c.pieces))
}

// A code is what is wrong with a request, or with the provider.
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
	broken // the provider: status says how
)

// A failure is an error, to be written as the family writes it.
type failure struct {
	code    code
	status  int
	message string
	param   string
	hit     *hit
	hint    time.Duration
	noHint  bool
	m       *meter // what is left, if it is not the call's own
}

func bad(param, message string) *failure {
	return &failure{code: badRequest, status: 400, param: param, message: message}
}
