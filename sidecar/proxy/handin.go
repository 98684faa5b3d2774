package proxy

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// HandIn stores a request that did not arrive at a listener, for the named caller, and writes the usual response. The
// component that received the request has authenticated the caller. The route or the operation must be configured to
// deliver. HandIn always writes a response: 503 if the request's context ended before any other.
func (p *Proxy) HandIn(w http.ResponseWriter, r *http.Request, caller string) {
	a := &replied{ResponseWriter: w}
	if p.handIn(a, r, caller); !a.is {
		f := &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Wait: time.Second, Message: "the request was not stored: its context ended"}
		f.RetryAfter(w.Header())
		f.Write(w)
	}
}

// A replied records whether a response was written.
type replied struct {
	http.ResponseWriter
	is bool
}

func (a *replied) WriteHeader(status int) {
	a.is = a.is || status >= http.StatusOK
	a.ResponseWriter.WriteHeader(status)
}

func (a *replied) Write(b []byte) (int, error) {
	a.is = true
	return a.ResponseWriter.Write(b)
}

func (p *Proxy) handIn(w http.ResponseWriter, r *http.Request, caller string) {
	t := p.table.Load()
	id := correlationOf(r)
	w.Header()[httpx.CorrelationHeader] = []string{id}
	trip, not := t.handedIn(w, r, id, guest{Name: caller})
	if not != nil {
		if to := p.later.Load(); to != nil {
			(*to).Refused(*not)
		}
		not.facts.Write(w)
		return
	}
	done, ok := trip.charge(w, r.WithContext(trip.in(r.Context())))
	if !ok {
		return
	}
	defer done()
	p.deliver(w, r, trip)
}

// handedIn returns the trip of a submitted request, or the reason for a refusal.
func (t *table) handedIn(w http.ResponseWriter, r *http.Request, id string, who guest) (*trip, *NotAccepted) {
	nowhere := func(f *refuse.Facts) *NotAccepted {
		return &NotAccepted{Why: notRouted, Correlation: id, Field: "path", Err: f, facts: f}
	}
	if _, f := t.problem(r); f != nil {
		return nil, nowhere(f)
	}
	to, path, by, _, f := t.way(r, who)
	if f != nil {
		return nil, nowhere(f)
	}
	trip := &trip{to: to, path: path, route: *by, stream: by.Stream, id: id, who: who, table: t, counts: true}
	if f := trip.ownRoute(w, r); f != nil {
		return nil, trip.notHeard(f)
	}
	if trip.route.Deliver == DeliverNever {
		return nil, nowhere(&refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true, Message: fmt.Sprintf("neither route %s of upstream %s nor the operation of this request has deliver: true; add it to one of them", cmp.Or(by.Host+by.Path, "/"), to.Name)})
	}
	return trip, nil
}

// Unread reports a submitted message that is not a request.
func (p *Proxy) Unread(id string, err error) {
	if to := p.later.Load(); to != nil {
		(*to).Refused(NotAccepted{Why: notRead, Correlation: id, Err: err})
	}
}

// Panicked reports a submitted request whose handling panicked.
func (p *Proxy) Panicked(id string, err error) {
	if to := p.later.Load(); to != nil {
		(*to).Refused(NotAccepted{Why: notSound, Correlation: id, Err: err, facts: &refuse.Facts{Status: http.StatusInternalServerError, Fault: outcome.System}})
	}
}
