package llm

import "strings"

// Similar is what the user asks, and a hash of all else: of two requests with the same rest, one may have the answer of
// the other if their questions are alike. It is Key but for the words of the last message: instructions, turns before it and
// parameters must be the same. ok is false where a question does not stand alone: with tools or images anywhere, if
// the last message is not the user's or is more than one text, and where nobody writes an answer.
func (r *Request) Similar() (rest [32]byte, question string, ok bool) {
	r = r.open()
	if r.Tools || r.Stateful || !r.Generates || r.Operation == "other" || len(r.doc.nodes) == 0 || len(r.more) > 0 {
		return rest, "", false
	}
	asked := r.asked()
	if asked == 0 {
		return rest, "", false
	}
	return r.key(nil, asked), strings.ToValidUTF8(string(r.doc.text(asked, nil)), "\uFFFD"), true
}

// asked is the one text of the last message, 0 if it is no mere text of the user's.
func (r *Request) asked() (node uint32) {
	n := r.at[fMessages]
	if n == 0 {
		return 0
	}
	last := n
	if r.doc.kind(n) == kindArray {
		for e := n + 1; e < r.doc.nodes[n].next; e = r.doc.nodes[e].next {
			last = e
		}
		if r.doc.kind(last) != kindObject || last == n {
			return 0
		}
	}
	var parts []string
	if !r.byUser(last) || !r.doc.said(last, &parts) || len(parts) != 1 {
		return 0
	}
	for p := range r.pieces() {
		switch within := p.node >= last && p.node < r.doc.nodes[last].next; {
		case p.what != isText:
			return 0
		case within && (node != 0 || r.doc.kind(p.node) != kindString || !spoken[string(r.doc.name(p.node))]):
			return 0
		case within:
			node = p.node
		}
	}
	return node
}
