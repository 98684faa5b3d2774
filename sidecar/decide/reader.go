package decide

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A value is a JSON value in its source form.
type value struct {
	kind kind
	text string   // content of a string, digits of a number
	in   []member // members of an object or a list
}

// A member is a value in an object, with a name, or in a list.
type member struct {
	name string
	value
	taken bool // was requested; see fields
}

type kind uint8

const (
	isNull kind = iota
	isTrue
	isFalse
	isNumber
	isText
	isObject
	isList
)

// A reader reads JSON that is known to be valid: it only finds where values end. Its results do not share its input
// bytes.
type reader struct {
	rest []byte
}

// next returns the next character that is not a space.
func (r *reader) next() byte {
	for r.rest[0] <= ' ' {
		r.rest = r.rest[1:]
	}
	return r.rest[0]
}

// value reads a value. Objects must not have duplicate fields.
func (r *reader) value() (value, error) {
	switch r.next() {
	case '{':
		return r.object()
	case '[':
		return r.list()
	case '"':
		return value{kind: isText, text: r.text()}, nil
	}
	switch word := r.word(); string(word) {
	case "true":
		return value{kind: isTrue}, nil
	case "false":
		return value{kind: isFalse}, nil
	case "null":
		return value{kind: isNull}, nil
	default:
		return value{kind: isNumber, text: string(word)}, nil
	}
}

// few is the number of fields up to which an object is searched linearly. Larger objects get a map of names.
const few = 16

func (r *reader) object() (value, error) {
	o := value{kind: isObject}
	var names map[string]bool
	for r.rest = r.rest[1:]; r.next() != '}'; {
		if r.rest[0] == ',' {
			r.rest = r.rest[1:]
			r.next()
		}
		m := member{name: r.text()}
		if names = namesOf(names, o.in); names[m.name] || names == nil && find(o.in, m.name) != nil {
			return o, fmt.Errorf("field %s is given twice", quoted(m.name))
		}
		r.next()
		r.rest = r.rest[1:] // the colon
		var err error
		if m.value, err = r.value(); err != nil {
			return o, err
		}
		if o.in == nil {
			o.in = make([]member, 0, 4)
		}
		o.in = append(o.in, m)
	}
	r.rest = r.rest[1:]
	return o, nil
}

// namesOf returns the names of an object with many fields. The last field is not included yet. For an object with few
// fields it returns nil.
func namesOf(names map[string]bool, all []member) map[string]bool {
	switch {
	case len(all) < few:
		return nil
	case names == nil:
		names = make(map[string]bool, 2*few)
		for i := range all {
			names[all[i].name] = true
		}
	default:
		names[all[len(all)-1].name] = true
	}
	return names
}

// find returns the member with this name, or nil.
func find(all []member, name string) *member {
	for i := range all {
		if all[i].name == name {
			return &all[i]
		}
	}
	return nil
}

func (r *reader) list() (value, error) {
	l := value{kind: isList}
	for r.rest = r.rest[1:]; r.next() != ']'; {
		if r.rest[0] == ',' {
			r.rest = r.rest[1:]
		}
		v, err := r.value()
		if err != nil {
			return l, err
		}
		l.in = append(l.in, member{value: v})
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
		if word, ok := known[string(all[1:end])]; ok {
			return word
		}
		return string(all[1:end])
	}
	var s string
	_ = json.Unmarshal(all, &s) // it is valid
	return s
}

// known are frequent words of requests. The reader returns them without allocating.
var known = wordsOf("upstream", "operation", "keys", "cost", "wait", "priority", "safe", "id", "expires", "calls",
	"permit", "outcome", "status", "headers", "code", "retry_after", "usage", "unsent", "again",
	"ok", "throttled", "failed", "rejected", "canceled", "unknown", "high", "normal", "low",
	"requests", "bytes", "tokens", "input_tokens", "output_tokens", "tenant", "user")

func wordsOf(all ...string) map[string]string {
	m := make(map[string]string, len(all))
	for _, w := range all {
		m[w] = w
	}
	return m
}

// word reads up to a space, a comma or a bracket.
func (r *reader) word() []byte {
	end := bytes.IndexAny(r.rest, " \t\r\n,]}")
	if end < 0 {
		end = len(r.rest)
	}
	word := r.rest[:end]
	r.rest = r.rest[end:]
	return word
}
