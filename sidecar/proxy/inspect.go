package proxy

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// hearing bounds how long a caller may take to send what a dialect wants to see of a body
// before the request is admitted.
const hearing = time.Minute

// hear has the dialect look at the request.
func (t *trip) hear(d httpx.Dialect) (f *refuse.Facts) {
	if u, ok := t.came.Body.(*upload); ok {
		until, spare := u.until, u.spare
		if at := time.Now().Add(hearing); until.IsZero() || at.Before(until) {
			u.until = at
		}
		u.spare = 0 // nobody else bounds it
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

// end ends the request's trace, and lets the dialect give up what it holds.
func (t *trip) end() {
	t.traced()
	if x, ok := t.exchange.(httpx.Ender); ok {
		x.End()
	}
}

// undeclared refuses what is of no declared operation where the upstream is closed to it.
func (t *trip) undeclared() *refuse.Facts {
	if !t.to.Closed {
		return nil
	}
	if t.isSocket(t.came) {
		return nil // of connect
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
		Message: "this upstream accepts only known and declared operations (undeclared: refuse), and this request is none of them"}
}
