package proxy

import (
	"net/http"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// An Own overrides the route's settings for requests of one operation. Nil fields keep the route's setting.
type Own struct {
	Deliver              *Deliver
	Keeps, Waits, Failed *bool // override the fields of Keep
}

// Over returns the route with the operation's settings.
func (o Own) Over(r Route) Route {
	if o.Deliver != nil {
		r.Deliver = *o.Deliver
	}
	if o.Keeps != nil {
		r.Keep.On = *o.Keeps
	}
	if o.Waits != nil {
		r.Keep.Waits = *o.Waits
	}
	if o.Failed != nil {
		r.Keep.Failed = *o.Failed
	}
	return r
}

// ownOf returns the operations that change a setting of a route, or nil if there are none.
func (u *Upstream) ownOf() map[string]Own {
	differs := make(map[string]Own)
	for name, o := range u.Own {
		if slices.ContainsFunc(u.routes(), func(r Route) bool { return o.Over(r) != r }) {
			differs[name] = o
		}
	}
	if len(differs) == 0 {
		return nil
	}
	return differs
}

// ownRoute applies the settings of the request's operation to the route. It refuses the request if the operation cannot
// be determined. If a dialect must read the body for that, the caller must send it within hearing.
func (t *trip) ownRoute(w http.ResponseWriter, r *http.Request) *refuse.Facts {
	if t.to.Own == nil {
		return nil
	}
	t.came = r
	if t.to.Dialect != nil {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(hearing))
		if f := t.hearLater(r); f != nil {
			t.unheard = true
			return f // the server does not wait for the rest either
		}
		_ = control.SetReadDeadline(time.Time{})
	}
	there := *r
	there.URL = address(t.url(), t.path, r.URL)
	c := t.to.transport.CallOf(there.WithContext(t.in(r.Context())))
	t.route = t.to.Own[c.Operation].Over(t.route)
	return nil
}

// notHeard reports a request for later delivery that the dialect refused before its operation was known.
func (t *trip) notHeard(f *refuse.Facts) *NotAccepted {
	return &NotAccepted{Upstream: t.to.Name, Correlation: t.id, Why: notSpoken, facts: f}
}

// paced returns the request with the usual timeouts for its body, because weir reads the body before it forwards the
// request.
func (t *trip) paced(w http.ResponseWriter, r *http.Request) *http.Request {
	l := &link{ResponseWriter: w, control: http.NewResponseController(w)}
	r = l.request(r, t.to.base.Timeouts, t.stream)
	t.paces, _ = r.Body.(*upload)
	return r
}
