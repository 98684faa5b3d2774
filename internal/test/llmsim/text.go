package llmsim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// echo answers with the model's name and the user's last message. It calls a required tool without arguments.
func echo(q Question) Reply {
	if q.MustCall != "" {
		return Reply{Tool: &ToolCall{Name: q.MustCall, Arguments: "{}"}}
	}
	return Reply{Text: fmt.Sprintf("%s heard: %s", q.Model, q.Text)}
}

// Count returns the number of tokens in a text: one per BytesPer bytes.
func (m Model) Count(text string) int64 { return count(text, m.whole()) }

func count(text string, m Model) int64 { return countBytes(len(text), m.BytesPer) }

func countBytes(n int, per float64) int64 { return int64(math.Ceil(float64(n) / per)) }

const filler = " and so it goes on, word for word,"

// lengthen gives a text the model's length and truncates it at most tokens. It reports whether it did.
func lengthen(text string, m Model, most int64) (string, bool) {
	if m.OutputTokens > 0 {
		size := int(float64(m.OutputTokens) * m.BytesPer)
		if len(text) < size {
			text += strings.Repeat(filler, (size-len(text))/len(filler)+1)
		}
		text = clip(text, size)
	}
	if count(text, m) <= most {
		return text, false
	}
	return clip(text, int(float64(most)*m.BytesPer)), true
}

// clip truncates a text to at most size bytes, between characters.
func clip(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}

// cutUp divides a text into the pieces of a stream.
func cutUp(text string, m Model) (pieces []string) {
	size := max(int(m.BytesPer*float64(m.PerEvent)), 1)
	for text != "" {
		_, least := utf8.DecodeRuneInString(text)
		piece := clip(text, max(size, least))
		if piece == "" { // no character starts within reach: it is not UTF-8
			piece = text[:least]
		}
		pieces, text = append(pieces, piece), text[len(piece):]
	}
	return pieces
}

// A part is a part of a message in any format.
type part struct {
	Type, Text string
	Content    json.RawMessage // of Anthropic's tool_result
	Output     json.RawMessage // of a function, in OpenAI's responses
	ToolResult *struct{ Content json.RawMessage }

	ImageURL   json.RawMessage `json:"image_url"`
	Source     json.RawMessage
	InlineData json.RawMessage
	Image      json.RawMessage

	FunctionResponse, FunctionCall json.RawMessage
}

// imageTokens is the number of tokens of an image of any size.
const imageTokens = 1000

// A reader counts the content of a request.
type reader struct {
	bytes    int
	images   int64
	messages int64
}

// text returns the text of a string or a list of parts.
func (r *reader) text(raw json.RawMessage) (string, bool) {
	raw = bytes.TrimSpace(raw)
	var s string
	if len(raw) == 0 || string(raw) == "null" {
		return "", true
	}
	if json.Unmarshal(raw, &s) == nil {
		r.bytes += len(s)
		return s, true
	}
	var parts []part
	if json.Unmarshal(raw, &parts) != nil {
		return "", false
	}
	var all []string
	for _, p := range parts {
		if t := r.part(p); t != "" {
			all = append(all, t)
		}
	}
	return strings.Join(all, "\n"), true
}

func (r *reader) part(p part) string {
	r.bytes += len(p.Text) + len(p.FunctionResponse) + len(p.FunctionCall)
	if p.ImageURL != nil || p.Source != nil || p.InlineData != nil || p.Image != nil {
		r.images++
	}
	r.text(p.Content)
	r.text(p.Output)
	if p.ToolResult != nil {
		r.text(p.ToolResult.Content)
	}
	return p.Text
}

// measure sets the call's input tokens: the text, and three for every message.
func (r *reader) measure(c *call) {
	more := imageTokens*r.images + 3*r.messages
	c.input = countBytes(r.bytes, c.spec.BytesPer) + more
	c.estimate = countBytes(r.bytes, 4) + more
	c.q.Messages = int(r.messages)
}

// quote returns a string as JSON.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return string(b)
}

// indent formats JSON as OpenAI and Gemini do.
func indent(s string) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(s), "", "  "); err != nil {
		panic(fmt.Sprintf("llmsim wrote JSON that is none: %v: %s", err, s))
	}
	b.WriteByte('\n')
	return b.Bytes()
}
