package proxy

import (
	"net/http"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// An Own is what an operation says of its requests in place of their route. What is nil is as the route says it.
type Own struct {
	Deliver              *Deliver
	Keeps, Waits, Failed *bool // of Keep
}

// Over is a route as it is for requests of the operation.
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

// ownOf is what operations say of their own that differs from what a route says; nil if nothing does.
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

// ownRoute has the route be as the operation of the request says, or says why that cannot be told. Where a dialect has to read the body
// to know which it is, the caller has some time to send it.
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
			return f // the server waits no longer for the rest either
		}
		_ = control.SetReadDeadline(time.Time{})
	}
	there := *r
	there.URL = address(t.url(), t.path, r.URL)
	c := t.to.transport.CallOf(there.WithContext(t.in(r.Context())))
	t.route = t.to.Own[c.Operation].Over(t.route)
	return nil
}

// notHeard tells of a request for later delivery that the dialect does not take, before it is known of which operation it is.
func (t *trip) notHeard(f *refuse.Facts) *NotAccepted {
	return &NotAccepted{Upstream: t.to.Name, Correlation: t.id, Why: notSpoken, facts: f}
}

// paced is a request whose body weir reads before it is sent on, for which its caller is waited for as it is for one that is sent on.
func (t *trip) paced(w http.ResponseWriter, r *http.Request) *http.Request {
	l := &link{ResponseWriter: w, control: http.NewResponseController(w)}
	r = l.request(r, t.to.base.Timeouts, t.stream)
	t.paces, _ = r.Body.(*upload)
	return r
}
