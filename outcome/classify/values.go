package classify

import (
	"bytes"
	"net/http"
)

// streamsValues reports whether a body may be a stream of JSON values, although its type is application/json: an array whose
// elements arrive one by one, as Google sends it, or values without separators, as gRPC-Gateway and Docker send them. Such a body
// has no length. Stored documents are the caller's data.
func streamsValues(h http.Header) bool {
	return mediaType(h) == "application/json" && h["Content-Length"] == nil && startsJSON(http.StatusOK, h)
}

// A valueScan splits a stream of JSON values. It keeps the beginning of each value without white space.
type valueScan struct {
	depth, base     int // base is the depth of the values: 1 in an array
	quoted, escaped bool
	n               int  // how many values have ended
	last            bool // the value that ended last is an error
	size            int  // of the current value
}

// mostFirst is the size of a first value outside an array from which the body counts as one document.
const mostFirst = 64 << 10

// feedValues reads the next bytes of a stream of JSON values.
func (s *Stream) feedValues(b []byte) {
	v := &s.values
	for _, c := range b {
		ended := false
		switch {
		case v.quoted:
			v.quoted = v.escaped || c != '"'
			v.escaped = !v.escaped && c == '\\'
		case c <= ' ', v.depth == v.base && c == ',':
			continue
		case c == '"':
			v.quoted = true
		case c == '[' && v.n == 0 && v.depth == 0 && v.base == 0:
			v.depth, v.base = 1, 1
			continue
		case c == '{' || c == '[':
			v.depth++
		case c == '}' || c == ']':
			v.depth--
			ended = v.depth == v.base
		}
		if v.depth <= v.base && !ended { // the end of the array, or a value without members
			continue
		}
		if v.size++; len(s.line) < mostLine {
			s.line = append(s.line, c)
		}
		if !ended {
			if v.base == 0 && v.n == 0 && v.size > mostFirst {
				s.ignore()
				return
			}
			continue
		}
		v.n++
		if v.last = s.endsStream(); v.last {
			s.text = append(s.text[:0], s.line...)
		}
		s.line, v.size = s.line[:0], 0
	}
}

// endsStream reports whether the value in line is an error that ends a stream. The elements of an array may be results of a batch,
// so that only an error of google.rpc counts. A value without an array must follow another.
func (s *Stream) endsStream() bool {
	if s.values.base == 0 {
		return s.values.n > 1 && isErrorObject(s.line)
	}
	rest, ok := bytes.CutPrefix(s.line, []byte(`{"error":{`))
	_, code, hasCode := bytes.Cut(rest, []byte(`"code":`))
	return ok && hasCode && len(code) > 0 && (code[0] == '4' || code[0] == '5') && bytes.Contains(rest, []byte(`"status":"`))
}
