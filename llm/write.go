package llm

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An object is JSON to write: names and values alternate, in the order of the output.
type object []any

type list []any

// appendValue writes a value. It supports only the types used in this package.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case string:
		return appendString(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case float64:
		out, _ := json.Marshal(v) // cannot be infinite, because it was a JSON number
		return append(b, out...)
	case json.RawMessage:
		return appendRaw(b, v)
	case map[string]string:
		return appendMap(b, v)
	case object:
		return appendObject(b, v)
	case list:
		b = append(b, '[')
		for i, e := range v {
			b = appendValue(comma(b, i), e)
		}
		return append(b, ']')
	}
	panic("llm: unexpected JSON value")
}

// separators escapes characters that some readers of event streams treat as line ends.
var separators = strings.NewReplacer("\u0085", `\u0085`, "\u2028", `\u2028`, "\u2029", `\u2029`)

// appendRaw writes JSON from the caller on one line.
func appendRaw(b []byte, v json.RawMessage) []byte {
	var line bytes.Buffer
	_ = json.Compact(&line, v) // already parsed, so it is valid
	return append(b, separators.Replace(line.String())...)
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

func appendObject(b []byte, o object) []byte {
	b = append(b, '{')
	for i := 0; i < len(o); i += 2 {
		b = appendValue(append(appendString(comma(b, i), o[i].(string)), ':'), o[i+1])
	}
	return append(b, '}')
}

func appendMap(b []byte, m map[string]string) []byte {
	b = append(b, '{')
	for i, k := range slices.Sorted(maps.Keys(m)) {
		b = appendString(append(appendString(comma(b, i), k), ':'), m[k])
	}
	return append(b, '}')
}

// appendString quotes a text. In addition to the necessary escapes, it escapes three characters that some readers of
// event streams treat as line ends. Invalid UTF-8 becomes U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		if mustEscape(r) {
			b = appendEscape(append(b, s[done:i]...), r)
			done = i + n
		}
		i += n
	}
	return append(append(b, s[done:]...), '"')
}

func mustEscape(r rune) bool {
	return r < ' ' || r == '"' || r == '\\' || r == 0x85 || r == 0x2028 || r == 0x2029 || r == utf8.RuneError
}

func appendEscape(b []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	switch r {
	case '"', '\\':
		return append(b, '\\', byte(r))
	case '\n':
		return append(b, '\\', 'n')
	case utf8.RuneError:
		return append(b, "\uFFFD"...)
	}
	return append(b, '\\', 'u', digits[r>>12], digits[r>>8&0xf], digits[r>>4&0xf], digits[r&0xf])
}
