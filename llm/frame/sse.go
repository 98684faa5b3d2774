package frame

import "bytes"

// An SSE splits a stream of server-sent events, as defined by the HTML standard. A frame ends with the blank line after
// an event. It may contain only comments, or nothing. The zero SSE is ready to use.
//
// Lines may end in LF, CRLF or CR. If a blank line ends in CR and the line before did not end in CRLF, the frame ends
// immediately, because no further byte may follow. If an LF does follow, it starts the next frame. An SSE is not safe
// for concurrent use.
type SSE struct {
	Max int // in bytes; 0 means 1 MiB

	w     window
	begun bool // after the place of a byte order mark
	line  bool // the current line is not blank
	cr    bool // the previous byte was a CR that ended a line
	crlf  bool // the previous line ended in CRLF
	ended bool // a blank line ended in CR and an LF is likely to follow
	over  bool // the current frame is too large and was returned in part
	lf    int  // index of the next LF in w.in, or len(w.in); less than w.i if unknown
}

// Feed adds received bytes.
func (s *SSE) Feed(p []byte) {
	s.w.feed(p)
	s.lf = -1
}

// Rest returns the received part of an incomplete event.
func (s *SSE) Rest() []byte { return s.w.Rest() }

// Next returns the next frame if it is complete.
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

// mark splits off a byte order mark at the start of the stream, so that it does not become part of the first line.
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

// afterCR consumes an LF after a CR and reports whether the frame is complete.
func (s *SSE) afterCR() bool {
	s.cr = false
	s.crlf = s.w.in[s.w.i] == '\n'
	if s.crlf {
		s.w.i++
	}
	return s.ended
}

// lineEnd advances to the end of the line or of the input, and reports whether the frame is complete.
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

// nextEnd returns the index of the next CR or LF, or the length of the input.
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

// wait keeps an incomplete frame, or returns it as opaque if it is too large.
func (s *SSE) wait() (Frame, bool) {
	n := len(s.w.Rest())
	if n > 0 && (s.over || n > orDefault(s.Max)) {
		s.over = true
		return Frame{Raw: s.w.cut(len(s.w.in)), Opaque: true, More: true}, true
	}
	s.w.keep()
	return Frame{}, false
}
