package reading

// A scanner reads JSON in pieces and reports the values that its tree names. It keeps nothing else. It accepts exactly
// valid JSON, up to a depth of maxDepth, and ignores everything after an error.
type scanner struct {
	tree *node
	to   interface {
		// said receives the content of a string with escapes, a number, a boolean, or nil for the end of an object. It
		// must not keep raw.
		said(f field, raw []byte)

		// most returns the maximum memory in bytes for a value that spans two pieces.
		most(f field) int
	}

	state state
	depth int
	isObj [maxDepth / 64]uint64
	path  [pathDepth]*node // places of the open objects and arrays
	cur   *node            // place of the next value

	ended bool   // the value is complete, whatever follows it
	isKey bool   // the string is a key
	esc   bool   // the string has escapes
	hex   int    // remaining digits of \u
	word  string // remaining letters of true, false or null
	buf   []byte // start of the current value from earlier pieces
}

const (
	maxDepth  = 1024
	pathDepth = 12
	maxKey    = 64
)

type state uint8

const (
	atValue  state = iota
	atFirst        // in an array: a value, or the end
	atKey          // a key must follow
	atFirst2       // in an object: a key, or the end
	atColon
	afterValue
	inString
	inEscape
	inHex
	inWord
	numMinus // states of a number, named after its last byte
	numZero
	numInt
	numDot
	numFrac
	numE
	numSign
	numExp
	done
	bad
)

func (s *scanner) reset(tree *node) {
	s.tree, s.cur, s.state, s.depth, s.ended, s.buf = tree, tree, atValue, 0, false, s.buf[:0]
}

// whole reports whether the text is complete and valid.
func (s *scanner) whole() bool {
	return s.state == done || s.depth == 0 && s.state.endsNumber()
}

func (st state) endsNumber() bool {
	return st == numZero || st == numInt || st == numFrac || st == numExp
}

func (s *scanner) feed(p []byte) {
	from := 0 // start of the current string, number or word in p
	for i := 0; i < len(p); {
		switch {
		case s.state == bad:
			return
		case s.state == inString:
			var ended bool
			if i, ended = s.string(p, i); ended {
				s.stringEnd(p[from : i-1])
			}
		case s.state >= inEscape && s.state <= inHex:
			s.escape(p[i])
			i++
		case s.state == inWord:
			i = s.letter(p, from, i)
		case s.state >= numMinus && s.state <= numExp:
			i = s.digit(p, from, i)
		default:
			if s.step(p[i]) {
				from = i
				if s.state == inString {
					from++
				}
			}
			i++
		}
	}
	s.keep(p, from)
}

// keep copies the received part of an incomplete value that will be reported.
func (s *scanner) keep(p []byte, from int) {
	if s.state < inString || s.state > numExp || from > len(p) {
		return
	}
	most := maxKey
	if !s.isKey {
		if s.cur == nil || s.cur.leaf == none {
			return
		}
		most = s.to.most(s.cur.leaf)
	}
	s.collect(p[from:], most)
}

func (s *scanner) collect(b []byte, most int) {
	s.buf = append(s.buf, b[:min(len(b), max(0, most-len(s.buf)))]...)
}

func (s *scanner) inside(b []byte, most int) []byte {
	if len(s.buf) == 0 {
		return b
	}
	s.collect(b, most)
	b, s.buf = s.buf, s.buf[:0]
	return b
}

// step processes a byte between values and reports whether it starts a string, number or word.
func (s *scanner) step(c byte) bool {
	if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
		return false
	}
	switch st := s.state; {
	case st == atFirst && c == ']', st == atFirst2 && c == '}':
		s.close(c)
	case st == atValue, st == atFirst:
		return s.value(c)
	case (st == atKey || st == atFirst2) && c == '"':
		s.state, s.isKey, s.esc = inString, true, false
		return true
	case st == atColon && c == ':':
		s.state = atValue
	case st == afterValue:
		s.after(c)
	default:
		s.state = bad
	}
	return false
}

func (s *scanner) value(c byte) bool {
	switch {
	case c == '"':
		s.state, s.isKey, s.esc = inString, false, false
		return true
	case c == '{':
		s.open(true)
		return false
	case c == '[':
		s.open(false)
		return false
	case c == '-':
		s.state = numMinus
	case c == '0':
		s.state = numZero
	case c >= '1' && c <= '9':
		s.state = numInt
	case c == 't':
		s.state, s.word = inWord, "rue"
	case c == 'f':
		s.state, s.word = inWord, "alse"
	case c == 'n':
		s.state, s.word = inWord, "ull"
	default:
		s.state = bad
	}
	s.isKey = false
	return true
}

func (s *scanner) open(object bool) {
	if s.depth == maxDepth {
		s.state = bad
		return
	}
	if s.depth < pathDepth {
		s.path[s.depth] = s.cur
	}
	w, bit := s.depth/64, uint64(1)<<(s.depth%64)
	s.isObj[w] &^= bit
	s.state = atFirst
	if object {
		s.isObj[w] |= bit
		s.state = atFirst2
	}
	s.depth++
	s.cur = s.top()
}

func (s *scanner) object() bool {
	d := s.depth - 1
	return s.isObj[d/64]&(1<<(d%64)) != 0
}

// top returns the place of the innermost open object or array.
func (s *scanner) top() *node {
	if s.depth == 0 || s.depth > pathDepth {
		return nil
	}
	return s.path[s.depth-1]
}

func (s *scanner) close(c byte) {
	if s.depth == 0 || s.object() != (c == '}') {
		s.state = bad
		return
	}
	if n := s.top(); n != nil && n.end != none && c == '}' {
		s.to.said(n.end, nil)
	}
	s.depth--
	s.valueEnd()
}

func (s *scanner) after(c byte) {
	switch {
	case c == '}', c == ']':
		s.close(c)
	case c != ',':
		s.state = bad
	case s.object():
		s.state = atKey
	default:
		s.state, s.cur = atValue, s.top()
	}
}

func (s *scanner) valueEnd() {
	s.state = afterValue
	if s.depth == 0 {
		s.state, s.ended = done, true
	}
}

// string advances past the end of the string or the next backslash.
func (s *scanner) string(p []byte, i int) (next int, ended bool) {
	for ; i < len(p); i++ {
		switch c := p[i]; {
		case c == '"':
			return i + 1, true
		case c == '\\':
			s.state, s.esc = inEscape, true
			return i + 1, false
		case c < ' ':
			s.state = bad
			return i + 1, false
		}
	}
	return i, false
}

func (s *scanner) escape(c byte) {
	if s.state == inEscape {
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.state = inString
		case 'u':
			s.state, s.hex = inHex, 4
		default:
			s.state = bad
		}
		return
	}
	if !isHex(c) {
		s.state = bad
		return
	}
	if s.hex--; s.hex == 0 {
		s.state = inString
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (s *scanner) stringEnd(b []byte) {
	if !s.isKey {
		s.say(b)
		s.valueEnd()
		return
	}
	key := s.inside(b, maxKey)
	if s.esc {
		key = unquote(nil, key[:min(len(key), maxKey)])
	}
	s.cur = s.top().kid(key)
	s.state = atColon
}

// say reports a value that the tree names.
func (s *scanner) say(b []byte) {
	if s.cur != nil && s.cur.leaf != none {
		s.to.said(s.cur.leaf, s.inside(b, s.to.most(s.cur.leaf)))
	}
}

func (s *scanner) letter(p []byte, from, i int) int {
	if p[i] != s.word[0] {
		s.state = bad
		return i
	}
	if s.word = s.word[1:]; s.word == "" {
		if p[i] != 'l' { // null is not reported
			s.say(p[from : i+1])
		}
		s.buf = s.buf[:0]
		s.valueEnd()
	}
	return i + 1
}

// digit processes the next byte of a number, or ends the number before it.
func (s *scanner) digit(p []byte, from, i int) int {
	if next := s.state.number(p[i]); next != bad {
		s.state = next
		return i + 1
	}
	if !s.state.endsNumber() {
		s.state = bad
		return i
	}
	s.say(p[from:i])
	s.buf = s.buf[:0]
	s.valueEnd()
	if s.state == done {
		s.cur = nil
	}
	return i
}

// number returns the state after one more character of a number.
func (st state) number(c byte) state {
	switch {
	case c >= '0' && c <= '9':
		return st.digit(c)
	case c == '.' && (st == numZero || st == numInt):
		return numDot
	case (c == 'e' || c == 'E') && (st == numZero || st == numInt || st == numFrac):
		return numE
	case (c == '+' || c == '-') && st == numE:
		return numSign
	}
	return bad
}

func (st state) digit(c byte) state {
	switch st {
	case numInt, numFrac, numExp:
		return st
	case numMinus:
		if c == '0' {
			return numZero
		}
		return numInt
	case numDot:
		return numFrac
	case numE, numSign:
		return numExp
	}
	return bad
}
