package proxy

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// hearing limits how long a caller may take to send the part of a body that a dialect reads before admission.
const hearing = time.Minute

// hear passes the request to the dialect.
func (t *trip) hear(d httpx.Dialect) (f *refuse.Facts) {
	if u, ok := t.came.Body.(*upload); ok {
		until, spare := u.until, u.spare
		if at := time.Now().Add(hearing); until.IsZero() || at.Before(until) {
			u.until = at
		}
		u.spare = 0 // here the transport does not bound the body
		defer func() { u.until, u.spare = until, spare }()
	}
	if t.exchange, f = d.Hear(t.came, t.path); f != nil {
		return f
	}
	if x, ok := t.exchange.(httpx.Pather); ok {
		t.path = x.Path()
	}
	return nil
}

// end ends the request's trace and releases what the dialect holds.
func (t *trip) end() {
	t.traced()
	if x, ok := t.exchange.(httpx.Ender); ok {
		x.End()
	}
}

// undeclared refuses a request of an undeclared operation if the upstream accepts only declared ones.
func (t *trip) undeclared() *refuse.Facts {
	if !t.to.Closed {
		return nil
	}
	if t.isSocket(t.came) {
		return nil // it belongs to the operation connect
	}
	x, named := t.exchange.(httpx.Declarer)
	if named && x.Declared() {
		return nil
	}
	policy := t.to.weir.Policy()
	if httpx.Declares(&policy, t.came.Method, strings.TrimSuffix(t.to.URL.EscapedPath(), "/")+t.path, named) {
		return nil
	}
	return &refuse.Facts{Status: http.StatusForbidden, Code: refuse.Forbidden, Final: true,
		Message: "this request has no known or declared operation, and the upstream accepts no others (undeclared: refuse): declare the operation"}
}
