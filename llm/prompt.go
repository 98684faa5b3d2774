package llm

import "iter"

// A Prompt has the sizes of a model's input from which tokens are estimated. Texts are measured in bytes of UTF-8,
// without JSON escapes.
type Prompt struct {
	Messages int64   // turns of the conversation; 1 for a single text
	System   int64   // bytes of instructions
	Text     int64   // bytes of all other text, including calls and results of tools
	Tools    int64   // bytes of tool definitions and answer schemas, as written in the body
	Numbers  int64   // number of tokens that are given as numbers
	Media    []Media // parts that are not text
}

// Bytes is the total size of the texts in bytes.
func (p Prompt) Bytes() int64 { return p.System + p.Text + p.Tools }

// A Media is an image or another part of a prompt that is not text.
type Media struct {
	Kind   MediaKind
	Bytes  int64  // 0 if the prompt contains only a reference
	Detail string // OpenAI's level of detail for an image: "low", "high", "auto" or ""
}

// A MediaKind is the kind of a part that is not text.
type MediaKind string

const (
	Image    MediaKind = "image"
	Audio    MediaKind = "audio"
	Video    MediaKind = "video"
	Document MediaKind = "document" // also unknown kinds
)

// A Part is the part of a prompt that contains a text.
type Part uint8

const (
	InMessages Part = iota
	InSystem
	InTools
)

// Prompt measures the model's input. A body that is not JSON counts as text.
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

// Texts iterates over the texts of the prompt in the order in which models get them: tools, instructions, messages. A
// text is valid until the next iteration. The caller must not change it, because most texts are slices of the body.
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

func (r *Request) length(p piece) int64 {
	if r.doc.kind(p.node) == kindString {
		return r.doc.size(p.node)
	}
	return int64(len(r.doc.raw(p.node)))
}
