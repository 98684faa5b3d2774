package frame

import "bytes"

// An Array splits a JSON array that arrives in chunks. Gemini streams such an array unless the request asks for events.
// A frame is an element with the preceding bracket or comma, which Element removes. The closing bracket is a separate
// frame. A text of one or more objects without an array is split after each object. The zero Array is ready to use.
//
// An Array finds the ends of elements. It does not check that they are valid JSON. An Array is not safe for concurrent
// use.
type Array struct {
	Max int // in bytes; 0 means 1 MiB

	w      window
	depth  int
	base   int  // nesting depth of elements: 1 in an array
	begun  bool // after the first bracket
	quoted bool // inside a string
	escape bool // after a backslash in a string
	loose  bool // after the end, or not JSON: no more splitting
	over   bool // the current element is too large and was returned in part
}

// Feed adds received bytes.
func (a *Array) Feed(p []byte) { a.w.feed(p) }

// Rest returns the received part of an incomplete element.
func (a *Array) Rest() []byte { return a.w.Rest() }

// Next returns the next frame if it is complete.
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

// step handles a byte outside strings and reports whether it ends a frame.
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

// skip advances to the end of a string or of the input.
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

// wait keeps an incomplete element, or returns it as opaque if it is too large. White space after the array is returned
// immediately.
func (a *Array) wait() (Frame, bool) {
	n := len(a.w.Rest())
	if n > 0 && (a.loose || a.over || n > orDefault(a.Max)) {
		a.over = !a.loose
		return Frame{Raw: a.w.cut(len(a.w.in)), Opaque: true, More: true}, true
	}
	a.w.keep()
	return Frame{}, false
}

// Element returns the element in a frame, or nothing for the closing bracket.
func Element(raw []byte) []byte {
	return bytes.TrimRight(bytes.TrimLeft(raw, "[, \t\r\n"), "] \t\r\n")
}
