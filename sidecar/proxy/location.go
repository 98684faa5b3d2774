package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir/internal/paths"
)

// pointers are headers of an answer in which the upstream says where a caller goes next. Canonical names.
var pointers = [...]string{"Location", "Content-Location", "Operation-Location", "Azure-Asyncoperation", "X-Goog-Upload-Url", "X-Goog-Upload-Control-Url"}

// linked is the field in which an upstream lists URLs, such as that of the next page.
const linked = "Link"

// points has an answer send its caller back through the route that it came by: the upstream knows nothing of a prefix that
// was taken off, and an absolute URL would lead past weir.
func (t *trip) points(h http.Header) {
	for _, name := range pointers {
		rewriteField(h, name, t.pointed)
	}
	rewriteField(h, linked, t.pointedLinks)
	rewriteField(h, "Refresh", t.pointedRefresh)
}

// rewriteField has each value of a field changed. The values that were there stay as they are: they may be kept elsewhere.
func rewriteField(h http.Header, name string, change func(string) string) {
	for i, v := range h[name] {
		if to := change(v); to != v {
			values := append([]string(nil), h[name]...)
			values[i] = to
			h[name] = values
		}
	}
}

// pointedLinks changes the references of a Link field: what stands in angle brackets outside of quoted parameters.
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

// pointedLink is a reference as the caller has to follow it. Clients take a whole URL of a Link for one without resolving it, so
// it stays whole: with the host that the caller asked for.
func (t *trip) pointedLink(ref string) string {
	to := t.pointed(ref)
	if to == ref || strings.HasPrefix(ref, "/") || t.came.Host == "" {
		return to
	}
	scheme := "http"
	if t.came.TLS != nil || strings.EqualFold(t.came.Header.Get("X-Forwarded-Proto"), "https") {
		scheme = "https"
	}
	return scheme + "://" + t.came.Host + to
}

// pointedRefresh changes the reference of a Refresh field, such as 5; url=/next.
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

// pointed is a reference as the caller has to follow it. One to another host, or to a path of the upstream that no request
// through weir has, stays as it is, and so does a relative one: what was taken off is the same for both.
func (t *trip) pointed(ref string) string {
	u, err := url.Parse(ref)
	if err != nil || u.User != nil || u.Opaque != "" || u.Host == "" && !strings.HasPrefix(ref, "/") {
		return ref
	}
	base := t.to.URL
	if u.Host != "" && (u.Scheme != "" && !strings.EqualFold(u.Scheme, base.Scheme) || !strings.EqualFold(withPort(u.Host, base.Scheme), withPort(base.Host, base.Scheme))) {
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
		return ref // it would be read as a host
	}
	if u.RawQuery != "" || u.ForceQuery {
		path += "?" + u.RawQuery
	}
	if u.Fragment != "" {
		path += "#" + u.EscapedFragment()
	}
	return path
}

// withPort is a host with the port that it has if it names none.
func withPort(host, scheme string) string {
	if (&url.URL{Host: host}).Port() != "" {
		return host
	}
	if scheme == "https" {
		return host + ":443"
	}
	return host + ":80"
}
