package resign

import (
	"net/http"
	"net/url"
	"sort"
	"strings"
)

// rawPath is the path as it stands in the request line. A URL that holds it in Opaque
// has the host before it if it begins with two slashes.
func rawPath(u *url.URL) string {
	path := u.EscapedPath()
	if u.Opaque != "" {
		path = strings.TrimPrefix(u.Opaque, "//"+u.Host)
	}
	if path == "" {
		return "/"
	}
	return path
}

// strict is a path as AWS writes it: every byte but letters, digits, - . _ ~ and the
// slash as %XX.
func strict(path string) string { return encode(decode(path, false), "/") }

// canonicalQuery is a query as AWS signs it: strictly encoded and sorted by name, then
// value. What cannot be decoded stands for itself.
func canonicalQuery(raw string) string {
	if raw == "" {
		return ""
	}
	var pairs [][2]string
	for _, pair := range strings.Split(raw, "&") {
		if pair != "" {
			k, v, _ := strings.Cut(pair, "=")
			pairs = append(pairs, [2]string{encode(decode(k, true), ""), encode(decode(v, true), "")})
		}
	}
	sort.SliceStable(pairs, func(i, j int) bool {
		if pairs[i][0] != pairs[j][0] {
			return pairs[i][0] < pairs[j][0]
		}
		return pairs[i][1] < pairs[j][1]
	})
	var b strings.Builder
	for i, p := range pairs {
		if i > 0 {
			b.WriteByte('&')
		}
		b.WriteString(p[0] + "=" + p[1])
	}
	return b.String()
}

func decode(s string, query bool) string {
	if !strings.ContainsAny(s, "%+") {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '%' && i+2 < len(s) && hex(s[i+1]) >= 0 && hex(s[i+2]) >= 0:
			b = append(b, byte(hex(s[i+1])<<4|hex(s[i+2])))
			i += 2
		case s[i] == '+' && query:
			b = append(b, ' ')
		default:
			b = append(b, s[i])
		}
	}
	return string(b)
}

func hex(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

const digits = "0123456789ABCDEF"

func encode(s, but string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 || strings.IndexByte(but, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', digits[c>>4], digits[c&15]})
	}
	return b.String()
}

// canonicalHeader is the names of the fields that are signed, and the fields as they
// are signed.
func canonicalHeader(h http.Header, host string) (names, fields string) {
	values := map[string]string{"host": host}
	all := []string{"host"}
	for name, v := range h {
		if strings.HasPrefix(name, "X-Amz-") || name == "Content-Type" || name == "Content-Md5" {
			name = strings.ToLower(name)
			values[name], all = oneLine(v), append(all, name)
		}
	}
	sort.Strings(all)
	var b strings.Builder
	for _, name := range all {
		b.WriteString(name + ":" + values[name] + "\n")
	}
	return strings.Join(all, ";"), b.String()
}

// oneLine is the values of a field with a comma between them and one space for many.
func oneLine(values []string) string {
	if len(values) == 1 && !strings.Contains(values[0], "  ") {
		return strings.TrimSpace(values[0])
	}
	clean := make([]string, len(values))
	for i, v := range values {
		clean[i] = strings.Join(strings.FieldsFunc(v, func(r rune) bool { return r == ' ' }), " ")
	}
	return strings.Join(clean, ",")
}
