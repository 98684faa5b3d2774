package proxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir/internal/paths"
)

// pointers are headers of an answer in which the upstream says where a caller goes next. Canonical names.
var pointers = [...]string{"Location", "Content-Location", "Operation-Location", "Azure-Asyncoperation"}

// points has an answer send its caller back through the route that it came by: the upstream knows nothing of a prefix that
// was taken off, and an absolute URL would lead past weir.
func (t *trip) points(h http.Header) {
	for _, name := range pointers {
		for i, v := range h[name] {
			if to := t.pointed(v); to != v {
				values := append([]string(nil), h[name]...)
				values[i] = to
				h[name] = values
			}
		}
	}
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
