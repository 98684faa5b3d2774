package reading

// maxText is how much text of an answer is collected, in bytes.
const maxText = 4 << 20

// A Text is what an answer says, apart from how.
type Text struct {
	Text   string
	Finish string // why the model stopped, in the provider's word
	Model  string // as the answer calls it
	ID     string

	// Plain means that Text is all there is: one answer, no calls of tools, no
	// pictures or sound, no citations or probabilities. It can be written in
	// another form, streamed or not, and nothing is lost but Thoughts.
	Plain bool

	Thoughts bool // the model has shown its thoughts, which Text does not hold
}

// collected is the text of an answer so far.
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

// Collect keeps the text of the answer, up to MaxText. It is to be called before
// Feed.
func (r *Reader) Collect() { r.text.on = true }

// Model is who the answer says has given it; "" if it does not say.
func (r *Reader) Model() string { return string(unquote(nil, r.text.model)) }

// Text is the text of the answer so far. It is not plain if Collect was not
// called, or there was more than MaxText.
func (r *Reader) Text() Text {
	c := &r.text
	return Text{
		Text: string(c.b), Finish: r.Finish(), Model: r.Model(), ID: string(unquote(nil, c.id)),
		Plain: c.on && !c.rich, Thoughts: c.thoughts,
	}
}
