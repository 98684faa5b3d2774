package httpx

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/paths"
)

// CallOf returns the description of a request for the policy.
func (t *Transport) CallOf(req *http.Request) weir.Call { return t.call(req) }

func (t *Transport) call(req *http.Request) weir.Call {
	var c weir.Call
	if t.Call != nil {
		c = t.Call(req)
	}
	path := paths.Read(rawPath(req.URL))
	o := t.Upstream.Assign(&c, func(o *weir.Operation, named bool) bool { return matches(o, req.Method, &path, named) })
	c.Safe = c.Safe || safe(o, req)
	if c.Safe && conditional(req) && !hasKey(req.Header) {
		c.Safe = false // even if the operation is declared safe
	}
	return c
}

// rawPath returns the path as it will be sent. URL.Opaque contains a path that Go would encode differently. If that path begins
// with two slashes, Opaque has the host before it.
func rawPath(u *url.URL) string {
	if u.Opaque == "" {
		return u.EscapedPath()
	}
	return strings.TrimPrefix(u.Opaque, "//"+u.Host)
}

// Declares reports whether a request, by its method and raw path, belongs to an operation that the policy declares. named means
// that operations have names.
func Declares(p *weir.Policy, method, rawPath string, named bool) bool {
	path := paths.Read(rawPath)
	for i := range p.Operations {
		if matches(&p.Operations[i], method, &path, named) {
			return true
		}
	}
	return false
}

// matches reports whether a request belongs to the operation, in any encoding of its path. If operations have names, an operation
// without methods and path only matches by its name.
func matches(o *weir.Operation, method string, path *paths.Path, named bool) bool {
	if named && o.Path == "" && len(o.Methods) == 0 {
		return false
	}
	return (len(o.Methods) == 0 || slices.Contains(o.Methods, strings.ToUpper(method))) && path.Begins(o.Path, o.AnyCase)
}

// safe reports whether the request may be repeated even if it may have been done. RFC 9110 9.2.2 defines which methods are
// idempotent.
func safe(o *weir.Operation, req *http.Request) bool {
	switch o.Safe {
	case weir.Yes:
		return true
	case weir.No:
		return false
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete, "":
		return hasKey(req.Header) || !Acts(req.Method, req.URL)
	}
	return hasKey(req.Header)
}

// hasKey reports whether the upstream can recognize a repeated request by its idempotency key.
func hasKey(h http.Header) bool {
	for name, v := range h {
		if len(v) > 0 && v[0] != "" && isKey(name) {
			return true
		}
	}
	return false
}

// isKey reports whether a header of this name holds an idempotency key: Idempotency-Key and its variants, such as
// Cko-Idempotency-Key and Idempotence-Key, and the headers of PayPal, AWS and the Repeatable Requests of OASIS. IDs of requests, such
// as X-Request-Id, are for logs.
func isKey(name string) bool {
	switch name {
	case "Paypal-Request-Id", "Repeatability-Request-Id", "X-Amz-Client-Token", "X-Amzn-Client-Token":
		return true
	}
	if !strings.Contains(name, "dempot") { // names are canonical
		return false
	}
	_, kind, _ := strings.Cut(name, "dempot")
	switch strings.ToLower(kind) {
	case "ency", "ence", "ency-key", "ence-key", "ent-key", "encykey", "ency-id", "ence-id", "ent-id", "ency-token", "ence-token", "ence-uuid", "ency-uuid":
		return true
	}
	return false
}
