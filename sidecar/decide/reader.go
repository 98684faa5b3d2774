package decide

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A reader reads JSON that is known to be valid: it only looks for where things end.
type reader struct {
	rest []byte
}

// next is the next character that is no space.
func (r *reader) next() byte {
	r.rest = bytes.TrimLeft(r.rest, " \t\r\n")
	return r.rest[0]
}

// value reads a value: a map, a list, a string, a json.Number, a bool or nil. No object may have a field twice.
func (r *reader) value() (any, error) {
	switch r.next() {
	case '{':
		return r.object()
	case '[':
		return r.list()
	case '"':
		return r.text(), nil
	}
	switch word := r.word(); word {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	default:
		return json.Number(word), nil
	}
}

func (r *reader) object() (any, error) {
	o := make(map[string]any)
	for r.rest = r.rest[1:]; r.next() != '}'; {
		if r.rest[0] == ',' {
			r.rest = r.rest[1:]
			r.next()
		}
		field := r.text()
		if _, twice := o[field]; twice {
			return nil, fmt.Errorf("field %s is there twice", quoted(field))
		}
		r.next()
		r.rest = r.rest[1:] // the colon
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		o[field] = v
	}
	r.rest = r.rest[1:]
	return o, nil
}

func (r *reader) list() (any, error) {
	var l []any
	for r.rest = r.rest[1:]; r.next() != ']'; {
		if r.rest[0] == ',' {
			r.rest = r.rest[1:]
		}
		v, err := r.value()
		if err != nil {
			return nil, err
		}
		l = append(l, v)
	}
	r.rest = r.rest[1:]
	return l, nil
}

// text reads a string.
func (r *reader) text() string {
	end, plain := 1, true
	for ; r.rest[end] != '"'; end++ {
		if r.rest[end] == '\\' {
			plain = false
			end++
		}
	}
	all := r.rest[:end+1]
	r.rest = r.rest[end+1:]
	if plain {
		return string(all[1:end])
	}
	var s string
	_ = json.Unmarshal(all, &s) // it is valid
	return s
}

// word reads what ends before a space, a comma or a bracket.
func (r *reader) word() string {
	end := bytes.IndexAny(r.rest, " \t\r\n,]}")
	if end < 0 {
		end = len(r.rest)
	}
	word := string(r.rest[:end])
	r.rest = r.rest[end:]
	return word
}
