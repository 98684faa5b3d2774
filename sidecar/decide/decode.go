package decide

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// parse reads the one JSON object that a body must be. Unlike encoding/json alone
// it takes no field twice, none in other letters, and no broken text.
func parse(body []byte) ([]member, *refuse.Facts) {
	if !utf8.Valid(body) {
		return nil, failed(http.StatusBadRequest, refuse.ValidationError, "the body is not UTF-8")
	}
	if !json.Valid(body) {
		return nil, failed(http.StatusBadRequest, refuse.ValidationError, "the body is not one JSON value: %v", syntax(body))
	}
	v, err := (&reader{rest: body}).value()
	if err != nil {
		return nil, failed(http.StatusBadRequest, refuse.ValidationError, "the body: %v", err)
	}
	if v.kind != isObject {
		return nil, failed(http.StatusBadRequest, refuse.ValidationError, "the body %s: want an object, {...}", shown(v))
	}
	return v.in, nil
}

// syntax says what is wrong with a body that is no JSON.
func syntax(body []byte) error {
	var v json.RawMessage
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return fmt.Errorf("%s", shown(string(body)))
}

// A mistake is one thing that is wrong with a request.
type mistake struct {
	Field   string `json:"field"`
	Value   string `json:"value,omitempty"` // shortened, as a Go string literal if it is text
	Problem string `json:"problem"`
}

// mistakes are all that is wrong with a request, as far as it is told.
type mistakes struct {
	path string // of what is looked at, before that of its fields
	all  []mistake
}

// mostMistakes bounds an answer, whatever is asked.
const mostMistakes = 10

func (m *mistakes) add(field string, v any, format string, args ...any) {
	if len(m.all) < mostMistakes {
		m.all = append(m.all, mistake{shorten(m.path + field), shown(v), fmt.Sprintf(format, args...)})
	}
}

// failure is the answer to a request with mistakes; nil if there are none.
func (m mistakes) failure() *refuse.Facts {
	if len(m.all) == 0 {
		return nil
	}
	var b strings.Builder
	for i, e := range m.all {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(e.Field)
		if e.Value != "" {
			b.WriteString(" " + e.Value)
		}
		b.WriteString(": " + e.Problem)
	}
	f := failed(http.StatusBadRequest, refuse.ValidationError, "%s", b.String())
	f.Details = map[string]any{"fields": m.all}
	return f
}

// missing stands for the value of a field that is not there.
type missing struct{}

// longestShown is how much of a value is said again.
const longestShown = 64

// shown is a value as errors say it: short, on one line, safe in a log.
func shown(v any) string {
	switch v := v.(type) {
	case missing:
		return ""
	case string:
		return quoted(v)
	case value:
		return v.shown()
	}
	return shorten(fmt.Sprint(v))
}

func (v value) shown() string {
	switch v.kind {
	case isNull:
		return "null"
	case isTrue:
		return "true"
	case isFalse:
		return "false"
	case isNumber:
		return shorten(v.text)
	case isText:
		return quoted(v.text)
	case isObject:
		return "{...}"
	}
	return "[...]"
}

// quoted is text as a Go literal, cut if it is long, with its length.
func quoted(s string) string {
	if len(s) <= longestShown {
		return strconv.QuoteToASCII(s)
	}
	return strconv.QuoteToASCII(cut(s)+"...") + fmt.Sprintf(" (%d bytes)", len(s))
}

// shorten is for what is not quoted: numbers, and paths of fields.
func shorten(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		s = strings.Trim(strconv.QuoteToASCII(s), `"`)
	}
	if len(s) <= longestShown {
		return s
	}
	return cut(s) + "..."
}

// cut is the beginning of s, without half a letter at its end.
func cut(s string) string {
	s = s[:longestShown]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// fields takes the fields of an object one after the other, and notes what is
// wrong with them.
type fields struct {
	all    []member
	path   string // of the object, "" or "keys."
	wrong  *mistakes
	asked  [mostFields]string // the names that were asked for
	n      int                // how many those are
	secret bool               // its values are not said again
}

// mostFields is how many fields there are in any object whose fields have fixed names.
const mostFields = 12

// take is the value of a field, if it is there.
func (f *fields) take(name string) (value, bool) {
	if f.n < mostFields {
		f.asked[f.n] = name
		f.n++
	}
	if m := find(f.all, name); m != nil {
		m.taken = true
		return m.value, true
	}
	return value{}, false
}

func (f *fields) bad(name string, v any, format string, args ...any) {
	if f.secret {
		v = missing{}
	}
	f.wrong.add(f.path+name, v, format, args...)
}

// rest notes the fields that nobody has taken.
func (f *fields) rest() {
	var unknown []string
	for i := range f.all {
		if !f.all[i].taken {
			unknown = append(unknown, f.all[i].name)
		}
	}
	slices.Sort(unknown)
	for _, name := range unknown {
		f.bad(name, missing{}, "unknown field; want %s", strings.Join(f.asked[:f.n], ", "))
	}
}
