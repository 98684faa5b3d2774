package frame

import "bytes"

// An Array cuts a JSON array that comes bit by bit, as Gemini streams it unless
// it is asked for events. A frame is an element with the bracket or comma before
// it; Element takes those away. The closing bracket is a frame of its own. A text
// that is no array, but one object or several, is cut behind each. The zero Array
// is ready for use.
//
// It looks for where elements end, and does not say whether they are valid.
type Array struct {
	Max int // bytes; 0 means 1 MiB

	w      window
	depth  int
	base   int  // the depth that elements stand at: 1 in an array
	begun  bool // past the first bracket
	quoted bool // in a string
	escape bool // after a backslash in it
	loose  bool // past the end, or no JSON: nothing is cut any more
	over   bool // the present element was too large and has been given out in part
}

// Feed hands over what has come.
func (a *Array) Feed(p []byte) { a.w.feed(p) }

// Rest is what has come of an element that is not whole.
func (a *Array) Rest() []byte { return a.w.Rest() }

// Next cuts off the next frame, if there is a whole one.
func (a *Array) Next() (Frame, bool) {
	for a.w.i < len(a.w.in) && !a.loose {
		if a.quoted {
			a.skip()
			continue
		}
		c := a.w.in[a.w.i]
		a.w.i++
		if a.step(c) {
			raw := a.w.cut(a.w.i)
			f := Frame{Raw: raw, Opaque: a.over || len(raw) > orDefault(a.Max)}
			a.over = false
			return f, true
		}
	}
	return a.wait()
}

// step takes a byte outside of strings and reports whether it ends a frame.
func (a *Array) step(c byte) bool {
	switch c {
	case '"':
		a.quoted = true
	case '{', '[':
		if !a.begun && c == '[' {
			a.base = 1
		}
		a.begun = true
		a.depth++
	case '}', ']':
		a.depth--
		a.loose = a.depth < a.base
		return a.depth <= a.base
	}
	return false
}

// skip goes to the end of a string, if it has come.
func (a *Array) skip() {
	for a.w.i < len(a.w.in) {
		c := a.w.in[a.w.i]
		a.w.i++
		switch {
		case a.escape:
			a.escape = false
		case c == '\\':
			a.escape = true
		case c == '"':
			a.quoted = false
			return
		}
	}
}

// wait holds what there is of an element, unless that is too much. White space
// behind the array is not worth waiting with.
func (a *Array) wait() (Frame, bool) {
	n := len(a.w.Rest())
	if n > 0 && (a.loose || a.over || n > orDefault(a.Max)) {
		a.over = !a.loose
		return Frame{Raw: a.w.cut(len(a.w.in)), Opaque: true, More: true}, true
	}
	a.w.keep()
	return Frame{}, false
}

// Element is the element of a frame; it is empty for the closing bracket.
func Element(raw []byte) []byte {
	return bytes.TrimRight(bytes.TrimLeft(raw, "[, \t\r\n"), "] \t\r\n")
}
