package frame

import "bytes"

// An SSE cuts a stream of server-sent events, as the HTML standard defines them.
// A frame is everything up to the blank line that ends an event; it may hold
// nothing but comments, or nothing at all. The zero SSE is ready for use.
//
// Lines may end in LF, CRLF or CR. After a blank line that is only a CR, and did
// not follow a CRLF, the frame ends at once, since nothing more might come; should
// an LF follow all the same, it leads the next frame.
type SSE struct {
	Max int // bytes; 0 means 1 MiB

	w     window
	begun bool // past where a byte order mark may be
	line  bool // the present line is not blank
	cr    bool // the byte before was a CR that ended a line
	crlf  bool // the line before ended in CRLF
	ended bool // a blank line has ended in CR, and an LF is likely
	over  bool // the present frame was too large and has been given out in part
	lf    int  // of w.in: where the next LF is, or its length; before w.i if not known
}

// Feed hands over what has come.
func (s *SSE) Feed(p []byte) {
	s.w.feed(p)
	s.lf = -1
}

// Rest is what has come of an event that is not whole.
func (s *SSE) Rest() []byte { return s.w.Rest() }

// Next cuts off the next frame, if there is a whole one.
func (s *SSE) Next() (Frame, bool) {
	if !s.begun {
		if f, ok := s.mark(); ok || !s.begun {
			return f, ok
		}
	}
	for s.w.i < len(s.w.in) {
		if s.cr && s.afterCR() {
			return s.emit(), true
		}
		if s.w.i < len(s.w.in) && s.lineEnd() {
			return s.emit(), true
		}
	}
	return s.wait()
}

// mark cuts off the byte order mark that a stream may begin with, so that it is
// not taken for a part of the first line.
func (s *SSE) mark() (f Frame, ok bool) {
	const bom = "\ufeff"
	b := s.w.Rest()
	if len(b) < len(bom) && string(b) == bom[:len(b)] {
		s.w.keep()
		return Frame{}, false
	}
	s.begun = true
	if bytes.HasPrefix(b, []byte(bom)) {
		return Frame{Raw: s.w.cut(s.w.at + len(bom))}, true
	}
	return Frame{}, false
}

// afterCR takes the LF that may follow a CR and reports whether the frame is whole.
func (s *SSE) afterCR() bool {
	s.cr = false
	s.crlf = s.w.in[s.w.i] == '\n'
	if s.crlf {
		s.w.i++
	}
	return s.ended
}

// lineEnd goes to the end of the line, if it has come, and reports whether that
// is the end of the frame.
func (s *SSE) lineEnd() bool {
	end := s.nextEnd()
	blank := !s.line && end == s.w.i
	if end == len(s.w.in) {
		s.line = s.line || !blank
		s.w.i = end
		return false
	}
	s.line = false
	s.w.i = end + 1
	if s.w.in[end] == '\n' {
		s.crlf = false
		return blank
	}
	s.cr = true
	s.ended = blank && s.crlf
	return blank && !s.crlf
}

// nextEnd is where the next CR or LF stands, or the length of what there is.
func (s *SSE) nextEnd() int {
	if s.lf < s.w.i {
		s.lf = index(s.w.in, s.w.i, len(s.w.in), '\n')
	}
	return index(s.w.in, s.w.i, s.lf, '\r')
}

func index(b []byte, from, to int, c byte) int {
	if i := bytes.IndexByte(b[from:to], c); i >= 0 {
		return from + i
	}
	return to
}

func (s *SSE) emit() Frame {
	raw := s.w.cut(s.w.i)
	f := Frame{Raw: raw, Opaque: s.over || len(raw) > orDefault(s.Max)}
	s.over, s.ended = false, false
	return f
}

// wait holds what there is of a frame, unless that is too much.
func (s *SSE) wait() (Frame, bool) {
	n := len(s.w.Rest())
	if n > 0 && (s.over || n > orDefault(s.Max)) {
		s.over = true
		return Frame{Raw: s.w.cut(len(s.w.in)), Opaque: true, More: true}, true
	}
	s.w.keep()
	return Frame{}, false
}
