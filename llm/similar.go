package llm

import "strings"

// Similar returns the user's question and a hash of everything else. If two requests have the same rest and similar
// questions, one answer may serve both. The hash is like Key, but without the text of the last message. Instructions,
// earlier turns and parameters must be equal. ok is false if the question cannot be separated from the rest. This is so
// for requests with tools or images, if the last message is not the user's or has more than one text, and if no text is
// generated.
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

// asked returns the node of the only text in the last message. It returns 0 if that message is not the user's or
// contains anything else.
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
