package llm

import "iter"

// A Prompt is what a model is to read, as far as tokens can be estimated from it. Texts
// are counted in bytes of UTF-8, as they read: without the escapes of JSON.
type Prompt struct {
	Messages int64   // turns of the conversation; 1 if there is only a text
	System   int64   // instructions
	Text     int64   // the rest that is said, what tools were asked and answered included
	Tools    int64   // definitions of tools and schemas of the answer, as they stand in the body
	Numbers  int64   // tokens that are given as numbers
	Media    []Media // what is no text
}

// Bytes are all the texts together.
func (p Prompt) Bytes() int64 { return p.System + p.Text + p.Tools }

// A Media is an image or another part of a prompt that is not text.
type Media struct {
	Kind   MediaKind
	Bytes  int64  // 0 if there is only a reference to it
	Detail string // what OpenAI is asked to look at: "low", "high", "auto" or ""
}

// A MediaKind is what a part of a prompt is.
type MediaKind string

const (
	Image    MediaKind = "image"
	Audio    MediaKind = "audio"
	Video    MediaKind = "video"
	Document MediaKind = "document" // also what is not known
)

// A Part says where in a prompt a text stands.
type Part uint8

const (
	InMessages Part = iota
	InSystem
	InTools
)

// Prompt measures what the model is to read. A body that is not JSON counts as text.
func (r *Request) Prompt() (p Prompt) {
	r = r.open()
	if len(r.doc.nodes) == 0 {
		p.Text = int64(len(r.doc.body))
		return p
	}
	p.Messages = r.turns()
	for piece := range r.pieces() {
		switch piece.what {
		case isMedia:
			p.Media = append(p.Media, piece.media)
		case isNumbers:
			p.Numbers += piece.count
		default:
			*p.of(piece.part) += r.length(piece)
		}
	}
	return p
}

func (p *Prompt) of(part Part) *int64 {
	switch part {
	case InSystem:
		return &p.System
	case InTools:
		return &p.Tools
	}
	return &p.Text
}

// Texts are the texts of the prompt, in the order in which models are given them:
// tools, instructions, messages. Each may be read until the next is asked for, and not
// be changed: most are parts of the body.
func (r *Request) Texts() iter.Seq2[Part, []byte] {
	return func(yield func(Part, []byte) bool) {
		r := r.open()
		if len(r.doc.nodes) == 0 {
			yield(InMessages, r.doc.body)
			return
		}
		var scratch []byte
		for p := range r.pieces() {
			if p.what != isText {
				continue
			}
			text := r.doc.raw(p.node)
			if r.doc.kind(p.node) == kindString {
				if text = r.doc.text(p.node, scratch); r.doc.nodes[p.node].escaped {
					scratch = text
				}
			}
			if !yield(p.part, text) {
				return
			}
		}
	}
}

// turns counts the messages.
func (r *Request) turns() int64 {
	n := r.at[fMessages]
	if n == 0 {
		return 0
	}
	v := r.doc.nodes[n]
	if v.kind != kindArray || v.next == n+1 || r.doc.kind(n+1) == kindNumber {
		return 1
	}
	var count int64
	for e := n + 1; e < v.next; e = r.doc.nodes[e].next {
		count++
	}
	return count
}

// length is how long the text of a piece is.
func (r *Request) length(p piece) int64 {
	if r.doc.kind(p.node) == kindString {
		return r.doc.size(p.node)
	}
	return int64(len(r.doc.raw(p.node)))
}
