package llm

import "strings"

// Question returns the text of the user's last message that has text, with its parts on separate lines. It returns "" if
// there is none.
func (r *Request) Question() string {
	r = r.open()
	if len(r.doc.nodes) == 0 || r.at[fMessages] == 0 || r.Operation == "embeddings" {
		return ""
	}
	n := r.at[fMessages]
	if r.doc.kind(n) == kindString {
		return string(r.doc.text(n, nil))
	}
	last := uint32(0)
	for _, e := range r.doc.elements(n) {
		if r.byUser(e) && r.doc.said(e, nil) {
			last = e
		}
	}
	if last == 0 {
		return ""
	}
	var parts []string
	r.doc.said(last, &parts)
	return strings.Join(parts, "\n")
}

// byUser reports whether a message is from the user. A message without a role is, except for items with a type in
// families other than Gemini.
func (r *Request) byUser(n uint32) bool {
	if r.doc.kind(n) == kindString {
		return true
	}
	role := r.doc.member(n, "role")
	if role == 0 {
		return r.Family == Gemini || r.doc.member(n, "type") == 0
	}
	return r.doc.is(role, "user") || r.doc.is(role, "USER")
}

// said reports whether a message contains text. If to is not nil, it appends the parts of the text.
func (d *document) said(n uint32, to *[]string) (some bool) {
	if d.kind(n) == kindString {
		return d.addText(n, to)
	}
	if v := d.member(n, "text"); v != 0 && d.kind(v) == kindString {
		return d.addText(v, to)
	}
	for _, name := range []string{"content", "parts"} {
		v := d.member(n, name)
		if v == 0 {
			continue
		}
		for _, e := range d.elements(v) {
			if d.kind(e) == kindString {
				some = d.addText(e, to) || some
			} else if t := d.member(e, "text"); t != 0 && d.kind(t) == kindString {
				some = d.addText(t, to) || some
			}
		}
	}
	return some
}

func (d *document) addText(n uint32, to *[]string) bool {
	if d.size(n) == 0 {
		return false
	}
	if to != nil {
		*to = append(*to, strings.ToValidUTF8(string(d.text(n, nil)), "\uFFFD"))
	}
	return true
}

// elements returns the elements of an array. A value that is not an array counts as an array with this one element, as
// for Google's servers.
func (d *document) elements(n uint32) (all []uint32) {
	if d.kind(n) != kindArray {
		return []uint32{n}
	}
	for e := n + 1; e < d.nodes[n].next; e = d.nodes[e].next {
		all = append(all, e)
	}
	return all
}
