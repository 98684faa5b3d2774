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

// parse reads the JSON object of a body. Unlike encoding/json it refuses duplicate fields, other letter cases and
// invalid UTF-8.
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

// syntax returns what is wrong with a body that is not JSON.
func syntax(body []byte) error {
	var v json.RawMessage
	if err := json.Unmarshal(body, &v); err != nil {
		return err
	}
	return fmt.Errorf("%s", shown(string(body)))
}

// A mistake is one error in a request.
type mistake struct {
	Field   string `json:"field"`
	Value   string `json:"value,omitempty"` // shortened; a Go string literal if it is a string
	Problem string `json:"problem"`
}

// mistakes are the errors in a request, up to mostMistakes.
type mistakes struct {
	path string // prefix of the fields' paths
	all  []mistake
}

// mostMistakes limits the size of a response.
const mostMistakes = 10

func (m *mistakes) add(field string, v any, format string, args ...any) {
	if len(m.all) < mostMistakes {
		m.all = append(m.all, mistake{shorten(m.path + field), shown(v), fmt.Sprintf(format, args...)})
	}
}

// failure returns the response to a request with mistakes. It returns nil if there are none.
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

// missing is the value of an absent field.
type missing struct{}

// longestShown is the number of bytes of a value that an error repeats.
const longestShown = 64

// shown returns a value for an error: short, on one line, and safe in a log.
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

// quoted returns text as a Go literal. Long text is cut, and its length added.
func quoted(s string) string {
	if len(s) <= longestShown {
		return strconv.QuoteToASCII(s)
	}
	return strconv.QuoteToASCII(cut(s)+"...") + fmt.Sprintf(" (%d bytes)", len(s))
}

// shorten cuts text that is not quoted: numbers, and paths of fields.
func shorten(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		s = strings.Trim(strconv.QuoteToASCII(s), `"`)
	}
	if len(s) <= longestShown {
		return s
	}
	return cut(s) + "..."
}

// cut returns the beginning of s, without an incomplete character at its end.
func cut(s string) string {
	s = s[:longestShown]
	for len(s) > 0 && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s
}

// fields takes the fields of an object one after another, and collects errors.
type fields struct {
	all    []member
	path   string // of the object, "" or "keys."
	wrong  *mistakes
	asked  [mostFields]string // the names that were requested
	n      int                // number of names in asked
	secret bool               // errors do not repeat its values
}

// mostFields is the largest number of fields in an object whose fields have fixed names.
const mostFields = 12

// take returns the value of a field, if it is present.
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

// rest reports the fields that were not taken.
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
