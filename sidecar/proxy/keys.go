package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/veil"
)

// A key is a scope with the function that reads its key from a request.
type key struct {
	scope string
	read  func(*http.Request) string
}

// ambiguous returns the name of a parameter that weir uses to distinguish requests and that servers could read
// differently: the query contains it twice in any spelling that some server accepts, or only in a spelling that weir
// does not read, or the query is invalid. It returns "" if there is none.
func (t *target) ambiguous(r *http.Request) string {
	if r.URL.RawQuery == "" || len(t.inQuery) == 0 {
		return ""
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	for _, name := range t.inQuery {
		count := countSpellings(r.URL.RawQuery, name)
		if count > 1 || name != apiKey && (err != nil || count != len(query[name])) {
			return name
		}
	}
	return ""
}

// countSpellings returns how often a query contains a parameter, as the most lenient servers read it. Old Python, Perl
// and Ruby servers also end a parameter at ";".
func countSpellings(raw, name string) (count int) {
	list := !strings.Contains(name, "[")
	want := bareName(name, list)
	for part := range strings.FieldsFuncSeq(raw, func(c rune) bool { return c == '&' || c == ';' }) {
		is, _, _ := strings.Cut(part, "=")
		if strings.EqualFold(bareName(lenient(is), list), want) {
			count++
		}
	}
	return count
}

// lenient unescapes a name and keeps invalid escapes. IIS also reads %u0061, and some servers unescape twice.
func lenient(s string) string {
	for range 2 {
		if !strings.ContainsAny(s, "%+") {
			return s
		}
		b := make([]byte, 0, len(s))
		for i := 0; i < len(s); i++ {
			digits := s[min(i+1, len(s)):]
			wide := len(digits) >= 5 && digits[0]|0x20 == 'u'
			switch {
			case s[i] == '+':
				b = append(b, ' ')
			case s[i] == '%' && wide && isHex(digits[1:5]):
				c, _ := strconv.ParseUint(digits[1:5], 16, 32)
				b = utf8.AppendRune(b, rune(c))
				i += 5
			case s[i] == '%' && len(digits) >= 2 && isHex(digits[:2]):
				c, _ := strconv.ParseUint(digits[:2], 16, 8)
				b = append(b, byte(c))
				i += 2
			default:
				b = append(b, s[i])
			}
		}
		s = string(b)
	}
	return s
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// bareName returns a parameter name as servers read it. PHP ends it at a NUL, drops leading spaces, and replaces spaces
// and dots by "_". Other servers trim white space. With list, bareName removes the list index of PHP, Rack and Express:
// key[] and key[a] are values of key.
func bareName(name string, list bool) string {
	name, _, _ = strings.Cut(name, "\x00")
	name = strings.TrimSpace(name)
	if i := strings.IndexByte(name, '['); list && i > 0 {
		name = name[:i]
	}
	return strings.Map(func(c rune) rune {
		if c == ' ' || c == '.' {
			return '_'
		}
		return c
	}, name)
}

// apiKey is the parameter in which Google's clients send their key.
const apiKey = "key"

// inQueryOf returns the query parameters that distinguish an upstream's requests.
func inQueryOf(u *Upstream) (names []string) {
	for _, s := range u.Keys {
		if s.Kind == httpx.FromQuery {
			names = append(names, s.Name)
		}
	}
	if u.Priority != nil && u.Priority.Kind == httpx.FromQuery {
		names = append(names, u.Priority.Name)
	}
	if u.Dialect != nil && !slices.Contains(names, apiKey) {
		names = append(names, apiKey)
	}
	return names
}

func keysOf(sources map[string]httpx.Source, v *veil.Veil) []key {
	var keys []key
	for scope, s := range sources {
		keys = append(keys, key{scope, s.Veiled(v, scope)})
	}
	return keys
}
