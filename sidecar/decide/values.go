package decide

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of a request. The limits store a key in 256 bytes, and a permit stores all keys.
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

// text returns a text field without control characters, of at most most bytes.
func (f *fields) text(name string, most int) string {
	v, ok := f.take(name)
	if !ok {
		return ""
	}
	if v.kind != isText {
		f.bad(name, v, "want a string")
		return ""
	}
	if !f.checkText(name, v.text, most) {
		return ""
	}
	return v.text
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

// needed returns a required text field.
func (f *fields) needed(name string, most int) string {
	s := f.text(name, most)
	if m := find(f.all, name); m == nil {
		f.bad(name, missing{}, "is missing")
	} else if m.kind == isText && m.text == "" {
		f.bad(name, "", "must not be empty")
	}
	return s
}

// flag returns a boolean field.
func (f *fields) flag(name string) bool {
	v, ok := f.take(name)
	if ok && v.kind != isTrue && v.kind != isFalse {
		f.bad(name, v, "want true or false")
	}
	return v.kind == isTrue
}

// one returns a field that is one of some words. It returns "" if the field is absent.
func (f *fields) one(name string, words ...string) string {
	v, ok := f.take(name)
	if !ok {
		return ""
	}
	if v.kind == isText && slices.Contains(words, v.text) {
		return v.text
	}
	f.bad(name, v, "want one of %s", strings.Join(words, ", "))
	return ""
}

// duration returns a field such as "1.5s" within bounds. It returns otherwise if the field is absent.
func (f *fields) duration(name string, least, most, otherwise time.Duration) time.Duration {
	v, ok := f.take(name)
	if !ok {
		return otherwise
	}
	d, err := time.ParseDuration(v.text)
	switch {
	case v.kind != isText || err != nil || strings.HasPrefix(v.text, "+"):
		f.bad(name, v, "want a duration in a string, such as \"1.5s\"")
	case d < least || d > most:
		f.bad(name, v, "want %v to %v", least, most)
	default:
		return d
	}
	return otherwise
}

// status returns an HTTP status. It returns 0 if the field is absent.
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

// integer returns a JSON number without fraction or exponent.
func integer(v value) (int64, bool) {
	if v.kind != isNumber {
		return 0, false
	}
	i, err := strconv.ParseInt(v.text, 10, 64)
	return i, err == nil
}

// within returns the fields of an object in a field. It returns false if there is none.
func (f *fields) within(name string, most int) (fields, bool) {
	v, ok := f.take(name)
	if !ok {
		return fields{}, false
	}
	if v.kind != isObject {
		f.bad(name, v, "want an object, {...}")
		return fields{}, false
	}
	if len(v.in) > most {
		f.bad(name, v, "has %d fields; want at most %d", len(v.in), most)
		return fields{}, false
	}
	return fields{all: v.in, path: f.path + name + ".", wrong: f.wrong, secret: f.secret}, true
}

// texts returns a field that is an object of strings, such as {"tenant": "acme"}.
func (f *fields) texts(name string, most, longest int) map[string]string {
	in, ok := f.within(name, most)
	if !ok {
		return nil
	}
	return in.eachText(longest)
}

func (f *fields) eachText(longest int) map[string]string {
	out := make(map[string]string, len(f.all))
	for i := range f.all {
		if k := f.all[i].name; f.checkName(k) {
			out[k] = f.text(k, longest)
		}
	}
	return out
}

// counts returns a field that is an object of numbers, such as {"tokens": 1200}.
func (f *fields) counts(name string) map[string]int64 {
	in, ok := f.within(name, mostUnits)
	if !ok {
		return nil
	}
	out := make(map[string]int64, len(in.all))
	for i := range in.all {
		if k := in.all[i].name; in.checkName(k) {
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
