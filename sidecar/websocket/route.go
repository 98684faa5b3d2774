package websocket

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// find returns the value at a path of names in a JSON object, without quotes if it is a string. twice reports that
// one of the names occurs more than once, also in other capitalization. Programs differ in which of them they use, so
// the message is ambiguous. find finds nothing outside objects, and does not check the text after the value. It
// allocates only for names and values with escapes.
func find(msg []byte, path []string) (value []byte, twice bool) {
	s := scan{rest: msg}
	for depth, name := range path {
		at, quoted, double, ok := s.field(name)
		switch {
		case double || !ok:
			return nil, double
		case depth == len(path)-1:
			return at, false
		case quoted:
			return nil, false // a string, whatever it contains
		}
		s.rest = at
	}
	return nil, false
}

// A scan goes through a JSON text without checking it. In valid JSON it finds the same as any parser.
type scan struct{ rest []byte }

// field returns the value of a name in the object that begins here.
func (s *scan) field(name string) (value []byte, quoted, twice, ok bool) {
	if s.next() != '{' {
		return nil, false, false, false
	}
	s.rest = s.rest[1:]
	for {
		switch s.next() {
		case ',':
			s.rest = s.rest[1:]
			continue
		case '"':
		default: // the object's end, or not JSON
			return value, quoted, false, ok
		}
		key := s.text()
		if s.next() != ':' {
			return nil, false, false, false
		}
		s.rest = s.rest[1:]
		isText := s.next() == '"'
		at := s.value()
		if at == nil {
			return nil, false, false, false
		}
		if !same(key, name) {
			continue
		}
		if ok {
			return nil, false, true, true
		}
		value, quoted, ok = at, isText, true
	}
}

// next returns the first byte that is not a space; 0 at the end.
func (s *scan) next() byte {
	for i, c := range s.rest {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			s.rest = s.rest[i:]
			return c
		}
	}
	s.rest = nil
	return 0
}

// text consumes a string and returns the text between its quotes; nil if it has no end.
func (s *scan) text() []byte {
	for i := 1; i < len(s.rest); i++ {
		end := bytes.IndexByte(s.rest[i:], '"')
		if end < 0 {
			break
		}
		i += end
		escapes := 0
		for s.rest[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			text := s.rest[1:i:i]
			s.rest = s.rest[i+1:]
			return text
		}
	}
	s.rest = nil
	return nil
}

// value consumes a value and returns it, without quotes if it is a string; nil if there is none.
func (s *scan) value() []byte {
	switch s.next() {
	case 0:
		return nil
	case '"':
		return unescaped(s.text())
	case '{', '[':
		return s.nested()
	}
	end := bytes.IndexAny(s.rest, ",}] \t\r\n")
	if end <= 0 {
		return nil
	}
	at := s.rest[:end:end]
	s.rest = s.rest[end:]
	return at
}

// nested consumes an object or a list.
func (s *scan) nested() []byte {
	whole, depth := s.rest, 0
	for len(s.rest) > 0 {
		switch s.rest[0] {
		case '"':
			if s.text() == nil {
				return nil
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if s.rest = s.rest[1:]; depth == 0 {
			return whole[:len(whole)-len(s.rest)]
		}
	}
	return nil
}

// same reports whether a parser could take a key for a name: some ignore case.
func same(key []byte, name string) bool {
	key = unescaped(key)
	if len(key) == len(name) && string(key) == name {
		return true
	}
	return len(key) >= len(name) && len(key) <= utf8.UTFMax*len(name) && bytes.EqualFold(key, []byte(name))
}

// unescaped returns the text between the quotes of a string without escapes.
func unescaped(text []byte) []byte {
	if bytes.IndexByte(text, '\\') < 0 {
		return text
	}
	var read string
	if json.Unmarshal([]byte(`"`+string(text)+`"`), &read) != nil {
		return text
	}
	return []byte(read)
}
