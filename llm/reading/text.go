package reading

// maxText is the maximum number of bytes of an answer's text that are collected.
const maxText = 4 << 20

// A Text is the content of an answer, independent of its format.
type Text struct {
	Text   string
	Finish string // the provider's reason why the model stopped
	Model  string // as reported in the answer
	ID     string

	// Plain reports that Text is the entire content: one answer without tool calls, images, audio, citations or
	// probabilities. It can be rewritten in another format, streamed or not, without losing anything except Thoughts.
	Plain bool

	Thoughts bool // the answer contained reasoning, which is not in Text
}

type collected struct {
	on       bool
	b        []byte
	rich     bool
	thoughts bool
	model    []byte
	id       []byte
}

func (c *collected) add(raw []byte) {
	if !c.on || c.rich {
		return
	}
	if len(c.b)+len(raw) > maxText {
		c.rich, c.b = true, nil
		return
	}
	c.b = unquote(c.b, raw)
}

// Collect makes the reader keep the text of the answer, up to 4 MiB. Call Collect before Feed.
func (r *Reader) Collect() { r.text.on = true }

// Model returns the model that the answer names, or "".
func (r *Reader) Model() string { return string(unquote(nil, r.text.model)) }

// Text returns the text of the answer so far. It is not Plain if Collect was not called or the text is longer than 4
// MiB.
func (r *Reader) Text() Text {
	c := &r.text
	return Text{
		Text: string(c.b), Finish: r.Finish(), Model: r.Model(), ID: string(unquote(nil, c.id)),
		Plain: c.on && !c.rich, Thoughts: c.thoughts,
	}
}
