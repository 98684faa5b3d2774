package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// Deliver determines which requests of a route are stored and delivered later.
type Deliver uint8

const (
	DeliverNever  Deliver = iota
	DeliverAsked          // requests with Prefer: respond-async
	DeliverAlways         // all requests
)

// An Accepter stores requests for later delivery; see delivery.Worker.
type Accepter interface {
	Accept(ctx context.Context, r *delivery.Request) (delivery.Delivery, bool, error)
	Refused(NotAccepted) // is called for a request that was not stored; must not block
	deliveries.Queue
}

// Later sets where requests for later delivery are stored. Without it they are refused.
func (p *Proxy) Later(a Accepter) { p.later.Store(&a) }

// DeliveriesPath is the path at which callers read the state of their deliveries.
const DeliveriesPath = "/-/weir" + deliveries.Path + "/"

// later reports whether the request is stored for later delivery.
func (r *Route) later(q *http.Request) bool {
	switch r.Deliver {
	case DeliverAlways:
		return true
	case DeliverAsked:
		_, asked := preference(q.Header, "respond-async")
		return asked
	}
	return false
}

// Stores reports whether the route stores requests or first answers.
func (r Route) Stores() bool { return r.Deliver != DeliverNever || r.Keep.On }

// preference reads one preference of Prefer (RFC 7240), a list that may span several lines. The first of equal names
// counts.
func preference(h http.Header, name string) (value string, ok bool) {
	for _, line := range h.Values("Prefer") {
		for item, rest := "", line; rest != ""; {
			item, rest = cutUnquoted(rest, ',')
			item, _ = cutUnquoted(item, ';')
			key, value, _ := strings.Cut(item, "=")
			if strings.EqualFold(strings.TrimSpace(key), name) {
				return strings.Trim(strings.TrimSpace(value), `"`), true
			}
		}
	}
	return "", false
}

// cutUnquoted cuts at the first separator outside of quoted strings.
func cutUnquoted(s string, sep byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// accepting is how long a caller waits until its request is stored.
const accepting = time.Second

// hand returns the letter to store, or why the request cannot be stored.
func (t *trip) hand(r *http.Request, to Accepter) (*letter, *NotAccepted) {
	if f := t.hearLater(r); f != nil {
		return nil, &NotAccepted{Why: notSpoken, facts: f}
	}
	if f := t.undeclared(); f != nil {
		return nil, &NotAccepted{Why: notDeclared, facts: f}
	}
	return t.letter(r, to)
}

// store stores a request, or finds the stored one with the same key.
func store(ctx context.Context, to Accepter, q *letter) (delivery.Delivery, bool, *NotAccepted) {
	ctx, cancel := context.WithTimeout(ctx, accepting)
	defer cancel()
	d, fresh, err := to.Accept(ctx, &q.Request)
	if q.late != nil && errors.Is(err, q.Late) {
		return d, false, q.late
	}
	if err != nil {
		return d, false, notStored(d.ID, err)
	}
	return d, fresh, nil
}

// deliver stores a request and sends a receipt to its caller.
func (p *Proxy) deliver(w http.ResponseWriter, r *http.Request, t *trip) {
	to := p.later.Load()
	if to == nil {
		refusal(w, http.StatusServiceUnavailable, refuse.ServiceUnavailable, "deliveries are not configured: add deliveries to the file, and restart weir", nil)
		return
	}
	t.came = r
	t.traces(p.tracer.Load())
	defer t.traced()
	q, not := t.hand(r, *to)
	var d delivery.Delivery
	fresh := false
	if not == nil {
		defer q.release()
		t.keepsTrace(q.Header)
		var free func()
		if free, not = p.takesKey(r.Context(), t, r, q); not == nil {
			d, fresh, not = store(r.Context(), *to, q)
			free()
		}
	}
	if not != nil {
		not.Upstream, not.Correlation, not.ID = t.to.Name, t.id, d.ID
		(*to).Refused(*not)
		t.said = not.facts.Status
		not.write(w)
		return
	}
	t.stored = fresh
	var applied []string
	if _, asked := preference(r.Header, "respond-async"); asked {
		applied = append(applied, "respond-async")
	}
	if wait, ok := preference(r.Header, "wait"); ok {
		if s, err := strconv.Atoi(wait); err == nil && s > 0 {
			s = min(s, longestWait)
			applied = append(applied, "wait="+strconv.Itoa(s))
			d = p.watch(r.Context(), *to, d, time.Duration(s)*time.Second)
		}
	}
	h := w.Header()
	if applied != nil {
		h.Set("Preference-Applied", strings.Join(applied, ", "))
	}
	h.Set("Location", location(r, d.ID))
	if !fresh {
		h.Set("Idempotency-Replayed", "true")
	}
	status := http.StatusAccepted
	if !d.Waits() {
		status = http.StatusOK
	}
	h.Set("Content-Type", "application/json")
	t.said = status
	t.trace.Note(trace.Text(trace.AttrDelivery, d.ID))
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(deliveries.ReceiptOf(&d))
}

// location returns the URL of a delivery, at the address that the caller used, where its token is valid.
func location(r *http.Request, id string) string {
	at := url.URL{Scheme: schemeOf(r), Host: r.Host, Path: DeliveriesPath + id}
	if r.Host == "" { // HTTP/1.0
		at.Scheme = ""
	}
	return at.String()
}

// longestWait is the longest time, in seconds, that a caller may wait for its delivery.
const longestWait = 60

// watch returns the delivery when it ends, when long has passed, or when weir is about to stop.
func (p *Proxy) watch(ctx context.Context, a Accepter, d delivery.Delivery, long time.Duration) delivery.Delivery {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for wait := 5 * time.Millisecond; d.Waits() && ctx.Err() == nil; wait = min(2*wait, 250*time.Millisecond) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return d
		case <-p.leaving:
			return d
		}
		if now, err := a.Get(ctx, d.ID); err == nil {
			d = now
		}
	}
	return d
}
