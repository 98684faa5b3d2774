package llm

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
	"unsafe"
)

// maxDepth is the maximum nesting depth. Tool schemas are a few dozen levels deep. The parsers of providers stop between
// 500 and 10,000 levels.
const maxDepth = 1000

// A document is a parsed JSON text. It has a node for each value and each member name, in the order of the text. Nodes
// use at most 8 bytes for each byte of the text.
type document struct {
	body  []byte
	nodes []node
}

// A node is a value or the name of a member. In an object, names and values alternate.
type node struct {
	start, end uint32 // offsets of the value; those of a string exclude the quotes
	next       uint32 // the first node after this one and its contents
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

// scan parses a JSON text (RFC 8259), with or without a byte order mark.
func scan(body []byte) (document, *RequestError) {
	if uint64(len(body)) >= math.MaxUint32 {
		return document{}, &RequestError{Problem: "is larger than 4 GiB"}
	}
	if !utf8.Valid(body) {
		return document{}, &RequestError{Problem: "is not valid UTF-8"}
	}
	s := scanner{document: document{body: body}}
	if len(body) > measured {
		if s.dry = true; s.whole() { // count first, then allocate exactly once
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

// measured is the body size in bytes above which values are counted before nodes are allocated.
const measured = 64 << 10

// Values returns the number of values and names in a JSON body. It allocates no nodes. If the body is not JSON, it
// returns the number before the error.
func Values(body []byte) int {
	if uint64(len(body)) >= math.MaxUint32 {
		return 0
	}
	s := scanner{document: document{body: body}, dry: true}
	s.whole()
	return s.count
}

// NodeSize is the memory in bytes for each of the Values while a body is being read.
const NodeSize = int64(unsafe.Sizeof(node{}))

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
	dry     bool // only count values
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

// peek skips white space and returns the next byte, or 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.body) && s.body[s.at] > ' ' {
		return s.body[s.at]
	}
	if s.space(); s.at < len(s.body) {
		return s.body[s.at]
	}
	return 0
}

// add appends a node. Its next is correct for a value that contains no other values.
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

// elements parses the contents of a container up to its end.
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

// plain returns the index of the next quote, backslash or control character in a string, or the length of b. It checks
// eight bytes at once. Subtracting 1 from a byte sets its highest bit only if the byte was 0 or the bit was set. A
// borrow can give a wrong result only for bytes after the first match.
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
