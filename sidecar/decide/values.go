package decide

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a request can hold at most. A key is kept by the limits in 256 bytes, and
// a permit keeps all of the keys.
const (
	longestName  = 64
	longestKey   = 256
	longestKeys  = 1024
	longestID    = 128
	mostKeys     = 16
	mostUnits    = 16
	mostHeaders  = 64
	longestValue = 1024
	mostCost     = 1 << 40
)

// text is a field of text without control characters, of so many bytes at most.
func (f *fields) text(name string, most int) string {
	v, ok := f.take(name)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		f.bad(name, v, "want a string")
		return ""
	}
	if !f.checkText(name, s, most) {
		return ""
	}
	return s
}

func (f *fields) checkText(name, s string, most int) bool {
	switch {
	case len(s) > most:
		f.bad(name, s, "is longer than %d bytes", most)
	case strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }):
		f.bad(name, s, "has a control character")
	default:
		return true
	}
	return false
}

// needed is a text that must be there.
func (f *fields) needed(name string, most int) string {
	s := f.text(name, most)
	if v, ok := f.values[name]; !ok {
		f.bad(name, missing{}, "is missing")
	} else if v == "" {
		f.bad(name, v, "must not be empty")
	}
	return s
}

// flag is a field that is true or false.
func (f *fields) flag(name string) bool {
	v, ok := f.take(name)
	b, is := v.(bool)
	if ok && !is {
		f.bad(name, v, "want true or false")
	}
	return b
}

// one is a field that is one of some words, "" if it is not there.
func (f *fields) one(name string, words ...string) string {
	v, ok := f.take(name)
	if !ok {
		return ""
	}
	if s, is := v.(string); is && slices.Contains(words, s) {
		return s
	}
	f.bad(name, v, "want one of %s", strings.Join(words, ", "))
	return ""
}

// duration is a field such as "1.5s", within bounds.
func (f *fields) duration(name string, least, most, otherwise time.Duration) time.Duration {
	v, ok := f.take(name)
	if !ok {
		return otherwise
	}
	s, _ := v.(string)
	d, err := time.ParseDuration(s)
	switch {
	case err != nil || strings.HasPrefix(s, "+"):
		f.bad(name, v, "want a duration in a string, such as \"1.5s\"")
	case d < least || d > most:
		f.bad(name, v, "want %v to %v", least, most)
	default:
		return d
	}
	return otherwise
}

// status is an HTTP status, 0 if it is not there.
func (f *fields) status(name string) int {
	v, ok := f.take(name)
	if !ok {
		return 0
	}
	n, is := integer(v)
	if !is || n < 100 || n > 599 {
		f.bad(name, v, "want an HTTP status, 100 to 599")
		return 0
	}
	return int(n)
}

// integer is a JSON number without fraction or exponent.
func integer(v any) (int64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	return i, err == nil
}

// within is the fields of an object in a field, nil if there is none.
func (f *fields) within(name string, most int) *fields {
	v, ok := f.take(name)
	if !ok {
		return nil
	}
	o, is := v.(map[string]any)
	if !is {
		f.bad(name, v, "want an object, {...}")
		return nil
	}
	if len(o) > most {
		f.bad(name, v, "has %d fields; %d are the most", len(o), most)
		return nil
	}
	return &fields{values: o, path: f.path + name + ".", wrong: f.wrong}
}

// texts is the fields of an object of text, such as {"tenant": "acme"}.
func (in *fields) texts(longest int) map[string]string {
	if in == nil {
		return nil
	}
	out := make(map[string]string, len(in.values))
	for _, k := range keysOf(in.values) {
		if in.checkName(k) {
			out[k] = in.text(k, longest)
		}
	}
	return out
}

// counts is a field that is an object of numbers, such as {"tokens": 1200}.
func (f *fields) counts(name string) map[string]int64 {
	in := f.within(name, mostUnits)
	if in == nil {
		return nil
	}
	out := make(map[string]int64, len(in.values))
	for _, k := range keysOf(in.values) {
		if in.checkName(k) {
			out[k] = in.count(k)
		}
	}
	return out
}

func (f *fields) count(name string) int64 {
	v, _ := f.take(name)
	n, ok := integer(v)
	switch {
	case !ok:
		f.bad(name, v, "want a whole number, 0 to %d", int64(mostCost))
	case n < 0:
		f.bad(name, v, "must not be negative")
	case n > mostCost:
		f.bad(name, v, "is more than %d", int64(mostCost))
	default:
		return n
	}
	return 0
}

func (f *fields) checkName(name string) bool {
	if name == "" {
		f.bad(name, missing{}, "the name of a field must not be empty")
		return false
	}
	return f.checkText(name, name, longestName)
}
