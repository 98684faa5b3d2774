package httpx

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/paths"
)

// call is what the policy needs to know of a request.
// CallOf is what the policy is told of a request.
func (t *Transport) CallOf(req *http.Request) weir.Call { return t.call(req) }

func (t *Transport) call(req *http.Request) weir.Call {
	var c weir.Call
	if t.Call != nil {
		c = t.Call(req)
	}
	path := paths.Read(rawPath(req.URL))
	o := t.Upstream.Assign(&c, func(o *weir.Operation, named bool) bool { return matches(o, req.Method, &path, named) })
	c.Safe = c.Safe || safe(o, req.Method, req.Header)
	if c.Safe && conditional(req) && !hasKey(req.Header) {
		c.Safe = false // whatever the operation says
	}
	return c
}

// rawPath is the path as it will be sent. A URL that holds it in Opaque does so
// because Go would write it differently; if it begins with two slashes, the host
// is written before it.
func rawPath(u *url.URL) string {
	if u.Opaque == "" {
		return u.EscapedPath()
	}
	return strings.TrimPrefix(u.Opaque, "//"+u.Host)
}

// Declares reports whether a request, by its method and raw path, belongs to an operation
// that the policy declares. named says that requests have names.
func Declares(p *weir.Policy, method, rawPath string, named bool) bool {
	path := paths.Read(rawPath)
	for i := range p.Operations {
		if matches(&p.Operations[i], method, &path, named) {
			return true
		}
	}
	return false
}

// matches reports whether a request belongs to the operation, however its path is written. Where requests have names, an operation that
// says neither methods nor path is the one of its name alone.
func matches(o *weir.Operation, method string, path *paths.Path, named bool) bool {
	if named && o.Path == "" && len(o.Methods) == 0 {
		return false
	}
	return (len(o.Methods) == 0 || slices.Contains(o.Methods, strings.ToUpper(method))) && path.Begins(o.Path, o.AnyCase)
}

// safe reports whether the request may be repeated even if it may have been
// done. Of the methods RFC 9110 9.2.2 calls these idempotent.
func safe(o *weir.Operation, method string, h http.Header) bool {
	switch o.Safe {
	case weir.Yes:
		return true
	case weir.No:
		return false
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete, "":
		return true
	}
	return hasKey(h)
}

// hasKey reports whether the upstream can tell a repeated request by its idempotency key.
func hasKey(h http.Header) bool {
	return h.Get("Idempotency-Key") != "" || h.Get("X-Idempotency-Key") != ""
}
