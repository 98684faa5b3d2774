package proxy

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/seed1158cd35/weir/internal/paths"
)

// pointers lists response headers in which the upstream refers the caller to another URL. Names are canonical.
var pointers = [...]string{"Location", "Content-Location", "Operation-Location", "Azure-Asyncoperation", "X-Goog-Upload-Url", "X-Goog-Upload-Control-Url"}

// linked is the field in which an upstream lists URLs, such as the next page.
const linked = "Link"

// points rewrites the URLs in a response so that they lead back through the caller's route. The upstream does not know
// a prefix that weir removed, and an absolute URL would bypass weir.
func (t *trip) points(h http.Header) {
	for _, name := range pointers {
		rewriteField(h, name, t.pointedLink)
	}
	rewriteField(h, linked, t.pointedLinks)
	rewriteField(h, "Refresh", t.pointedRefresh)
	rewriteField(h, "Set-Cookie", t.pointedCookie)
	for name := range h {
		if points(name) && !slices.Contains(pointers[:], name) {
			rewriteField(h, name, t.pointedURL)
		}
	}
}

// points reports whether the name of a header means that its value is a URL: Upload-Location, X-Next-Url.
func points(name string) bool {
	for _, end := range [...]string{"-Location", "-Url", "-Uri", "-Link", "Uri"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// pointedURL rewrites an absolute URL, which stays absolute. A path may mean something else.
func (t *trip) pointedURL(v string) string {
	if !strings.HasPrefix(v, "http") {
		return v
	}
	return t.pointedLink(v)
}

// pointedCookie rewrites the path of a cookie. A client would otherwise not send it to the route, or would send it to other
// routes.
func (t *trip) pointedCookie(v string) string {
	pair, attributes, _ := strings.Cut(v, ";")
	parts := strings.Split(attributes, ";")
	for i, part := range parts {
		name, path, ok := strings.Cut(part, "=")
		if ok && strings.EqualFold(strings.TrimSpace(name), "Path") && strings.HasPrefix(path, "/") {
			if to := t.pointed(path); path == "/" || !strings.HasSuffix(path, "/") {
				path = cmp.Or(strings.TrimSuffix(to, "/"), "/") // also matches the route's path without a slash
			} else {
				path = to
			}
			parts[i] = name + "=" + path
			return pair + ";" + strings.Join(parts, ";")
		}
	}
	return v
}

// rewriteField replaces each value of a field. It does not write to the existing slice, which may be shared.
func rewriteField(h http.Header, name string, change func(string) string) {
	for i, v := range h[name] {
		if to := change(v); to != v {
			values := append([]string(nil), h[name]...)
			values[i] = to
			h[name] = values
		}
	}
}

// pointedLinks rewrites the references of a Link field: the text in angle brackets outside of quoted parameters.
func (t *trip) pointedLinks(v string) string {
	var out strings.Builder
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case quoted && c == '\\' && i+1 < len(v):
			out.WriteByte(c)
			i++
		case c == '"':
			quoted = !quoted
		case c == '<' && !quoted:
			if end := strings.IndexByte(v[i:], '>'); end > 0 {
				out.WriteString("<" + t.pointedLink(v[i+1:i+end]))
				i += end
			}
		}
		out.WriteByte(v[i])
	}
	return out.String()
}

// pointedLink rewrites one reference. An absolute URL stays absolute, with the host that the caller used: SDKs use the
// URLs of links, uploads and long operations without resolving them.
func (t *trip) pointedLink(ref string) string {
	to := t.pointed(ref)
	if to == ref || strings.HasPrefix(ref, "/") || t.came.Host == "" {
		return to
	}
	return schemeOf(t.came) + "://" + t.came.Host + to
}

// schemeOf returns the scheme of the URL that a caller used.
func schemeOf(r *http.Request) string {
	if r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https") {
		return "https"
	}
	return "http"
}

// pointedRefresh rewrites the reference of a Refresh field, such as 5; url=/next.
func (t *trip) pointedRefresh(v string) string {
	at := strings.IndexAny(v, ";,")
	if at < 0 {
		return v
	}
	rest := strings.TrimLeft(v[at+1:], " \t")
	if len(rest) >= 3 && strings.EqualFold(rest[:3], "url") {
		if after, ok := strings.CutPrefix(strings.TrimLeft(rest[3:], " \t"), "="); ok {
			rest = strings.TrimLeft(after, " \t")
		}
	}
	before := v[:len(v)-len(rest)]
	quote := ""
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		quote, rest = rest[:1], rest[1:]
		if ref, after, closed := strings.Cut(rest, quote); closed {
			return before + quote + t.pointed(ref) + quote + after
		}
		return v
	}
	ref := strings.TrimRight(rest, " \t")
	return before + t.pointed(ref) + rest[len(ref):]
}

// pointed rewrites a reference for the caller. References to another host, or to a path that no request through weir
// can have, are unchanged. Relative references are unchanged because the removed prefix is the same for both.
func (t *trip) pointed(ref string) string {
	u, err := url.Parse(ref)
	if err != nil || u.User != nil || u.Opaque != "" || u.Host == "" && !strings.HasPrefix(ref, "/") {
		return ref
	}
	base := t.to.URL
	if u.Host != "" && (u.Scheme != "" && !strings.EqualFold(u.Scheme, base.Scheme) || !sameHost(u, base)) {
		return ref
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if at := strings.TrimSuffix(base.EscapedPath(), "/"); at != "" {
		rest, under := paths.Rest(at+"/", path)
		if !under {
			return ref
		}
		path = rest
	}
	if t.route.Strip {
		path = strings.TrimSuffix(t.route.Path, "/") + path
	}
	if strings.HasPrefix(path, "//") {
		return ref // a client would read it as a host
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		path += "#" + u.EscapedFragment()
	}
	return path
}

// sameHost reports whether a URL has the host and port of the upstream's. Names are compared as they are resolved.
func sameHost(u, base *url.URL) bool {
	return portOf(u, base.Scheme) == portOf(base, base.Scheme) && asciiName(u.Hostname()) == asciiName(base.Hostname())
}

func portOf(u *url.URL, scheme string) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case scheme == "https":
		return "443"
	}
	return "80"
}

// asciiName returns a host name in lower case, without a final dot. Non-ASCII names are encoded by IDNA.
func asciiName(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if ascii, err := idna.Lookup.ToASCII(name); err == nil {
		return ascii
	}
	return name
}
