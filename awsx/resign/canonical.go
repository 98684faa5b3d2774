package resign

import (
	"net/http"
	"net/url"
	"slices"
	"sort"
	"strings"
)

// rawPath returns the path as in the request line. If the path begins with two slashes, URL.Opaque has the host before it.
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

// strict returns a path with AWS's encoding: every byte except letters, digits, - . _ ~ and the slash as %XX.
func strict(path string) string { return encode(decode(path, false), "/") }

// canonicalQuery returns a query in the form that AWS signs: strictly encoded and sorted by name, then value. Parts that cannot
// be decoded are taken literally.
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

// unreserved are the bytes that are not encoded.
var unreserved = func() (t [256]bool) {
	for c := range t {
		t[c] = c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", byte(c)) >= 0
	}
	return t
}()

func encode(s, but string) string {
	as := func(c byte) bool { return unreserved[c] || strings.IndexByte(but, c) >= 0 }
	begin := 0
	for begin < len(s) && as(s[begin]) {
		begin++
	}
	if begin == len(s) {
		return s
	}
	b := append(make([]byte, 0, len(s)+16), s[:begin]...)
	for i := begin; i < len(s); i++ {
		if c := s[i]; as(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', digits[c>>4], digits[c&15])
		}
	}
	return string(b)
}

// canonicalHeader returns the names of the signed fields, and the fields in the form that is signed.
func canonicalHeader(h http.Header, host string) (names, fields string) {
	all := make([][2]string, 1, 8)
	all[0] = [2]string{"host", host}
	size := len("host:\n") + len(host)
	for name, v := range h {
		if strings.HasPrefix(name, "X-Amz-") || name == "Content-Type" || name == "Content-Md5" {
			f := [2]string{strings.ToLower(name), oneLine(v)}
			all, size = append(all, f), size+len(f[0])+len(f[1])+2
		}
	}
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	b, n := make([]byte, 0, size), make([]byte, 0, size)
	for i, f := range all {
		if i > 0 {
			n = append(n, ';')
		}
		n = append(n, f[0]...)
		b = append(append(append(append(b, f[0]...), ':'), f[1]...), '\n')
	}
	return string(n), string(b)
}

// oneLine joins the values of a field with commas, and replaces repeated spaces by one.
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
