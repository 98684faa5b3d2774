package llm

import "unicode/utf8"

// Rest releases the parsed values of the body, which need far more memory than the body if there are many. The fields of
// Request stay. Methods that need the values parse the body again.
func (r *Request) Rest() {
	if len(r.doc.nodes) > 0 {
		r.doc.nodes, r.rested = nil, true
	}
}

// Forget releases the body and its parsed values. After that, only the fields of Request can be read.
func (r *Request) Forget() { r.doc = document{} }

// open returns a request with parsed values. It parses the body again if Rest released them.
func (r *Request) open() *Request {
	if !r.rested {
		return r
	}
	q := *r
	q.doc, _ = scan(r.doc.body) // the same body was parsed without error before
	q.rested = false
	return &q
}

// The nodes of a document are numbered. Node 0 is the root, which no other node contains. Functions that look up a node
// therefore return 0 if there is none.

func (d *document) kind(n uint32) kind { return d.nodes[n].kind }

// raw returns a value as written in the text, with quotes if it is a string.
func (d *document) raw(n uint32) []byte {
	v := &d.nodes[n]
	if v.kind == kindString {
		return d.body[v.start-1 : v.end+1]
	}
	return d.body[v.start:v.end]
}

// text returns the content of a string. It is a slice of the body if the string has no escapes. Otherwise it is appended
// to scratch, which may be nil.
func (d *document) text(n uint32, scratch []byte) []byte {
	v := &d.nodes[n]
	if !v.escaped {
		return d.body[v.start:v.end:v.end]
	}
	return unescape(scratch[:0], d.body[v.start:v.end])
}

func (d *document) size(n uint32) int64 {
	v := &d.nodes[n]
	if !v.escaped {
		return int64(v.end - v.start)
	}
	return unescapedLen(d.body[v.start:v.end])
}

// is reports whether node n is a string with content s.
func (d *document) is(n uint32, s string) bool {
	v := &d.nodes[n]
	return v.kind == kindString && string(d.text(n, nil)) == s
}

// member returns the value of an object's first member with one of the names. It returns 0 if there is none or n is not
// an object.
func (d *document) member(n uint32, names ...string) uint32 {
	if d.kind(n) != kindObject {
		return 0
	}
	for k := n + 1; k < d.nodes[n].next; k = d.nodes[k+1].next {
		for _, name := range names {
			if d.is(k, name) {
				return k + 1
			}
		}
	}
	return 0
}

// says returns the content of an object's string member, or "" if there is no such string.
func (d *document) says(n uint32, names ...string) string {
	if v := d.member(n, names...); v != 0 && d.kind(v) == kindString {
		return string(d.text(v, nil))
	}
	return ""
}

// unescape appends the content of a JSON string. An unpaired surrogate is encoded in three bytes, although UTF-8 does
// not allow that. This keeps the text distinct from every other text.
func unescape(to, s []byte) []byte {
	for len(s) > 0 {
		i := plain(s, 0)
		to, s = append(to, s[:i]...), s[i:]
		if len(s) > 0 {
			r, n := escaped(s)
			to, s = appendRune(to, r), s[n:]
		}
	}
	return to
}

func unescapedLen(s []byte) (n int64) {
	for len(s) > 0 {
		i := plain(s, 0)
		n, s = n+int64(i), s[i:]
		if len(s) > 0 {
			r, skip := escaped(s)
			n, s = n+int64(runeLen(r)), s[skip:]
		}
	}
	return n
}

// escaped decodes a valid escape, or both escapes of a surrogate pair. n is the number of bytes read.
func escaped(s []byte) (r rune, n int) {
	if s[1] != 'u' {
		return short[s[1]], 2
	}
	r, _ = hex4(s[2:])
	if 0xd800 <= r && r < 0xdc00 && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		if low, _ := hex4(s[8:]); 0xdc00 <= low && low < 0xe000 {
			return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, 12
		}
	}
	return r, 6
}

var short = [256]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func appendRune(b []byte, r rune) []byte {
	if 0xd800 <= r && r < 0xe000 {
		return append(b, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(b, r)
}

func runeLen(r rune) int {
	if 0xd800 <= r && r < 0xe000 {
		return 3
	}
	return utf8.RuneLen(r)
}

func hex4(s []byte) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, c := range s[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
