package llm

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// maxDepth bounds how deep values may be nested. Schemas of tools are a few dozen
// levels deep; parsers of providers stop between 500 and 10,000.
const maxDepth = 1000

// A document is a JSON text that has been read once: a node for each value and each
// name, in the order of the text. It holds at most 8 bytes for each byte of the text.
type document struct {
	body  []byte
	nodes []node
}

// A node is a value or a member's name. In an object names and values take turns.
type node struct {
	start, end uint32 // of the value; of a string, what stands between its quotes
	next       uint32 // the node after this one and all that is in it
	kind       kind
	escaped    bool // a string with escapes
}

type kind uint8

const (
	kindObject kind = iota
	kindArray
	kindString
	kindNumber
	kindTrue
	kindFalse
	kindNull
)

// scan reads a JSON text (RFC 8259), with a byte order mark or without.
func scan(body []byte) (document, *RequestError) {
	if uint64(len(body)) >= math.MaxUint32 {
		return document{}, &RequestError{Problem: "is larger than 4 GiB"}
	}
	if !utf8.Valid(body) {
		return document{}, &RequestError{Problem: "is not valid UTF-8"}
	}
	s := scanner{document: document{body: body}}
	if len(body) > measured {
		if s.dry = true; s.whole() { // room is made once, and no more than is wanted
			s = scanner{document: document{body: body, nodes: make([]node, 0, s.count)}}
		}
	} else {
		s.nodes = make([]node, 0, len(body)/32+16)
	}
	if s.problem == "" {
		s.whole()
	}
	if s.problem != "" {
		return document{}, &RequestError{Problem: s.problem}
	}
	return s.document, nil
}

// measured is a body so large that its values are counted before room is made for them.
const measured = 64 << 10

// Values is how many values and names a body has, if it is JSON; nothing is kept of it.
func Values(body []byte) int {
	if uint64(len(body)) >= math.MaxUint32 {
		return 0
	}
	s := scanner{document: document{body: body}, dry: true}
	s.whole()
	return s.count
}

// NodeSize is how many bytes are held for each of them while a body is read.
const NodeSize = int64(unsafe.Sizeof(node{}))

// whole reads all of the text.
func (s *scanner) whole() bool {
	body := s.body
	if len(body) >= 3 && string(body[:3]) == "\uFEFF" {
		s.at = 3
	}
	s.space()
	if s.at == len(body) {
		return s.fail("is empty: want JSON")
	}
	s.value(0)
	if s.space(); s.problem == "" && s.at < len(body) {
		s.fail("has data after the end of the JSON")
	}
	if s.problem != "" {
		s.problem += ", at byte " + strconv.Itoa(s.at)
		return false
	}
	return true
}

type scanner struct {
	document
	at      int
	problem string
	dry     bool // values are counted only
	count   int
}

func (s *scanner) fail(problem string) bool {
	if s.problem == "" {
		s.problem = problem
	}
	return false
}

func (s *scanner) notJSON() bool {
	if s.at >= len(s.body) {
		return s.fail("is not JSON: it ends too early")
	}
	return s.fail("is not JSON")
}

func (s *scanner) space() {
	for s.at < len(s.body) {
		switch s.body[s.at] {
		case ' ', '\n', '\t', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek is the next byte after spaces; 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.body) && s.body[s.at] > ' ' {
		return s.body[s.at]
	}
	if s.space(); s.at < len(s.body) {
		return s.body[s.at]
	}
	return 0
}

// add appends a node that is a value without others in it.
func (s *scanner) add(k kind, start, end int, escaped bool) {
	if s.dry {
		s.count++
		return
	}
	s.nodes = append(s.nodes, node{start: uint32(start), end: uint32(end), next: uint32(len(s.nodes) + 1), kind: k, escaped: escaped})
}

func (s *scanner) value(depth int) bool {
	switch c := s.peek(); c {
	case '{':
		return s.container(kindObject, '}', depth+1)
	case '[':
		return s.container(kindArray, ']', depth+1)
	case '"':
		return s.string()
	case 't':
		return s.literal(kindTrue, "true")
	case 'f':
		return s.literal(kindFalse, "false")
	case 'n':
		return s.literal(kindNull, "null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return s.number()
		}
		return s.notJSON()
	}
}

func (s *scanner) container(k kind, end byte, depth int) bool {
	if depth > maxDepth {
		return s.fail("is nested deeper than " + strconv.Itoa(maxDepth) + " levels")
	}
	me := len(s.nodes)
	s.add(k, s.at, 0, false)
	s.at++
	if s.peek() != end {
		if !s.elements(k, end, depth) {
			return false
		}
	}
	s.at++
	if s.dry {
		return true
	}
	s.nodes[me].end, s.nodes[me].next = uint32(s.at), uint32(len(s.nodes))
	return true
}

// elements reads what is in a container, up to its end.
func (s *scanner) elements(k kind, end byte, depth int) bool {
	for {
		if k == kindObject && !s.name() || !s.value(depth) {
			return false
		}
		switch s.peek() {
		case ',':
			s.at++
		case end:
			return true
		default:
			return s.notJSON()
		}
	}
}

func (s *scanner) name() bool {
	if s.peek() != '"' {
		return s.notJSON()
	}
	if !s.string() {
		return false
	}
	if s.peek() != ':' {
		return s.notJSON()
	}
	s.at++
	return true
}

func (s *scanner) literal(k kind, word string) bool {
	if len(s.body)-s.at < len(word) || string(s.body[s.at:s.at+len(word)]) != word {
		return s.notJSON()
	}
	s.add(k, s.at, s.at+len(word), false)
	s.at += len(word)
	return true
}

func (s *scanner) string() bool {
	s.at++
	start, escaped := s.at, false
	for {
		s.at = plain(s.body, s.at)
		switch {
		case s.at == len(s.body):
			return s.notJSON()
		case s.body[s.at] == '"':
			s.add(kindString, start, s.at, escaped)
			s.at++
			return true
		case s.body[s.at] != '\\':
			return s.fail("is not JSON: a string contains a control character")
		}
		escaped = true
		if !s.escape() {
			return false
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// plain skips what stands for itself in a string: up to a quote, a backslash, a
// control character or the end. It looks at eight bytes at once: subtracting 1 from a
// byte sets its highest bit only if it was 0 or that bit was set before, and a borrow
// can mislead only about bytes after the first that is found.
func plain(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^('"'*ones), w^('\\'*ones)
		found := ((quote-ones)&^quote | (slash-ones)&^slash | (w-' '*ones)&^w) & highs
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return i
}

func (s *scanner) escape() bool {
	if s.at+1 >= len(s.body) {
		s.at = len(s.body)
		return s.notJSON()
	}
	switch s.body[s.at+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.at += 2
		return true
	case 'u':
		if _, ok := hex4(s.body[s.at+2:]); ok {
			s.at += 6
			return true
		}
	}
	return s.fail("is not JSON: a string has an invalid escape")
}

func (s *scanner) number() bool {
	start := s.at
	if s.body[s.at] == '-' {
		s.at++
	}
	leading := s.at
	if digits := s.digits(); digits == 0 || digits > 1 && s.body[leading] == '0' {
		return s.notJSON()
	}
	if s.is('.') {
		if s.at++; s.digits() == 0 {
			return s.notJSON()
		}
	}
	if s.is('e') || s.is('E') {
		if s.at++; s.is('+') || s.is('-') {
			s.at++
		}
		if s.digits() == 0 {
			return s.notJSON()
		}
	}
	s.add(kindNumber, start, s.at, false)
	return true
}

func (s *scanner) is(c byte) bool { return s.at < len(s.body) && s.body[s.at] == c }

func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.body) && s.body[s.at]-'0' <= 9 {
		s.at++
	}
	return s.at - start
}
