package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// Deliver says which requests of a route are stored, and delivered later.
type Deliver uint8

const (
	DeliverNever  Deliver = iota
	DeliverAsked          // those with Prefer: respond-async
	DeliverAlways         // all
)

// An Accepter stores requests; see delivery.Worker.
type Accepter interface {
	Accept(ctx context.Context, r *delivery.Request) (delivery.Delivery, bool, error)
	deliveries.Queue
}

// Later has requests stored that are to be delivered later. Without it they are refused.
func (p *Proxy) Later(a Accepter) { p.later.Store(&a) }

// DeliveriesPath is where callers look at their deliveries.
const DeliveriesPath = "/-/weir" + deliveries.Path + "/"

// later reports whether the request is to be stored.
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

// preference reads one of Prefer (RFC 7240): a list over several lines, of which the first of
// equal names counts.
func preference(h http.Header, name string) (value string, ok bool) {
	for _, line := range h.Values("Prefer") {
		for item := range strings.SplitSeq(line, ",") {
			item, _, _ = strings.Cut(item, ";")
			key, value, _ := strings.Cut(item, "=")
			if strings.EqualFold(strings.TrimSpace(key), name) {
				return strings.Trim(strings.TrimSpace(value), `"`), true
			}
		}
	}
	return "", false
}

// accepting bounds how long a caller waits to hear that its request is stored.
const accepting = time.Second

// deliver stores a request, and gives its caller a receipt.
func (p *Proxy) deliver(w http.ResponseWriter, r *http.Request, t *trip) {
	to := p.later.Load()
	if to == nil {
		refusal(w, http.StatusServiceUnavailable, refuse.ServiceUnavailable, "weir has nowhere to keep what is delivered later (deliveries); a new start may be needed", nil)
		return
	}
	t.came = r
	f := t.hearLater(r)
	if f == nil {
		f = t.undeclared()
	}
	var q *delivery.Request
	if f == nil {
		q, f = t.letter(r)
	}
	if f != nil {
		f.Write(w)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), accepting)
	defer cancel()
	d, fresh, err := (*to).Accept(ctx, q)
	if err != nil {
		notAccepted(w, d.ID, err)
		return
	}
	applied := "respond-async"
	if wait, ok := preference(r.Header, "wait"); ok {
		if s, err := strconv.Atoi(wait); err == nil && s > 0 {
			s = min(s, longestWait)
			applied += ", wait=" + strconv.Itoa(s)
			d = p.watch(r.Context(), *to, d, time.Duration(s)*time.Second)
		}
	}
	h := w.Header()
	if _, asked := preference(r.Header, "respond-async"); asked {
		h.Set("Preference-Applied", applied)
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
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(deliveries.ReceiptOf(&d))
}

// location is where a caller finds its delivery: at the address that it has called, where its token counts.
func location(r *http.Request, id string) string {
	at := url.URL{Scheme: "http", Host: r.Host, Path: DeliveriesPath + id}
	if r.TLS != nil {
		at.Scheme = "https"
	}
	if r.Host == "" { // of HTTP/1.0
		at.Scheme = ""
	}
	return at.String()
}

// longestWait is how many seconds a caller may wait for its delivery.
const longestWait = 60

// watch is the delivery once it is over, or after a time, or when weir is about to end.
func (p *Proxy) watch(ctx context.Context, a Accepter, d delivery.Delivery, long time.Duration) delivery.Delivery {
	end := time.Now().Add(long)
	for wait := 5 * time.Millisecond; d.Waits() && time.Now().Before(end) && ctx.Err() == nil; wait = min(2*wait, 250*time.Millisecond) {
		select {
		case <-time.After(min(wait, time.Until(end))):
		case <-ctx.Done():
		case <-p.leaving:
			return d
		}
		if now, err := a.Get(ctx, d.ID); err == nil {
			d = now
		}
	}
	return d
}

// notAccepted says why a request is not known to be stored.
func notAccepted(w http.ResponseWriter, id string, err error) {
	var field *delivery.FieldError
	switch {
	case errors.As(err, &field):
		refusal(w, http.StatusBadRequest, refuse.ValidationError, err.Error(), map[string]any{"field": field.Field, "reason": field.Reason})
	case errors.Is(err, delivery.ErrKeyReused):
		refusal(w, http.StatusUnprocessableEntity, "IDEMPOTENCY_KEY_REUSED", "the Idempotency-Key was used for another request", map[string]any{"field": "Idempotency-Key"})
	default:
		w.Header().Set("Retry-After", "1")
		message := "the request was not stored: "
		if errors.Is(err, delivery.ErrUncertain) || errors.Is(err, context.DeadlineExceeded) {
			message = "whether the request was stored is not known; the same Idempotency-Key finds out: "
		}
		why := "the deliveries' file does not answer"
		if errors.Is(err, delivery.ErrFull) {
			why = "there is no room to store it"
		}
		refusal(w, http.StatusServiceUnavailable, refuse.ServiceUnavailable, message+why, map[string]any{"id": id})
	}
}

func refusal(w http.ResponseWriter, status int, code, message string, details map[string]any) {
	(&refuse.Facts{Status: status, Code: code, Message: message, Details: details}).Write(w)
}

// letter is what is kept of a request.
func (t *trip) letter(r *http.Request) (*delivery.Request, *refuse.Facts) {
	bad := func(field, reason string) (*delivery.Request, *refuse.Facts) {
		return nil, &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: field + ": " + reason, Details: map[string]any{"field": field, "reason": reason}, Final: true}
	}
	at := *r.URL
	t.who.hide(make(http.Header), &at)
	if field, reason := t.secret(r.Header, at.RawQuery); field != "" {
		return bad(field, reason)
	}
	if r.Header.Get("Upgrade") != "" {
		return bad("Upgrade", "a connection cannot be made later")
	}
	q := &delivery.Request{Tenant: t.who.Name, Owner: t.who.Name, Upstream: t.to.Name, Method: r.Method, Path: t.path, Query: at.RawQuery,
		Header: t.kept(r.Header), OrderKey: r.Header.Get(orderKey), Stop: t.to.Stop, Correlation: t.id}
	if name, what := reveals(q.Header); name != "" {
		return bad(name, doc.Quote(what)+" in it looks like a credential; those are not stored: send it without Prefer: respond-async")
	}
	if name := loses(r.Header, q.Header); name != "" {
		return bad(name, "is a condition that is not kept, and without it the request means another thing: send it without Prefer: respond-async, or have the condition kept (deliver_headers)")
	}
	var err error
	if q.Key, err = delivery.ParseKey(r.Header); err != nil {
		return bad("Idempotency-Key", err.Error())
	}
	now := time.Now()
	wrong := times(r.Header, q, now)
	if wrong == nil {
		wrong = t.lasts(r, q, now)
	}
	if wrong != nil {
		return bad(wrong.Field, wrong.Reason)
	}
	var f *refuse.Facts
	q.Body, f = t.bodyOf(r)
	return q, f
}

// secret names what a request shows that is not stored, and says what to do.
func (t *trip) secret(h http.Header, rawQuery string) (field, reason string) {
	for name, v := range h {
		if name != TokenHeader && veil.Secret(name) && !slices.Contains(t.who.Shown, name) && !t.renewed(name, v[0]) {
			return name, "credentials are not stored, and without them the request would be refused later: send it without Prefer: respond-async, or have weir hold the credentials of the upstream (credentials, aws)"
		}
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "query", "cannot be read, so nobody knows whether there are credentials in it: " + err.Error()
	}
	for name := range query {
		if veil.Secret(name) {
			return name, "looks like a credential in the query; those are not stored: send it without Prefer: respond-async"
		}
	}
	return "", ""
}

// bodyOf is the body of a request, if it is not larger than what is kept.
func (t *trip) bodyOf(r *http.Request) ([]byte, *refuse.Facts) {
	most := int64(delivery.MaxBody)
	if t.to.MaxBody > 0 {
		most = min(most, t.to.MaxBody)
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	if err != nil {
		return nil, httpx.BrokenBody(err)
	}
	if int64(len(body)) > most {
		return nil, &refuse.Facts{Status: http.StatusRequestEntityTooLarge, Code: refuse.ValidationError, Final: true,
			Message: fmt.Sprintf("the body is larger than the %d bytes that are kept of a request to be delivered later", most),
			Details: map[string]any{"field": "body", "reason": fmt.Sprintf("at most %d bytes", most)}}
	}
	return body, nil
}

// The headers by which callers say how a request is delivered later. They are said to weir, and not sent on.
const (
	notBefore     = "Weir-Not-Before"
	deliverBefore = "Weir-Deliver-Before"
	orderKey      = "Weir-Order-Key"
)

// unsaid takes out of a request that is sent on what is said to weir of one that is delivered later.
func unsaid(h http.Header) {
	for _, name := range []string{notBefore, deliverBefore, orderKey} {
		delete(h, name)
	}
}

// longPast is how long ago Weir-Not-Before may be: what was meant for an instant may come late, and goes at once.
const longPast = 24 * time.Hour

// times reads when a request is to be sent, and says what cannot be meant.
func times(h http.Header, q *delivery.Request, now time.Time) *delivery.FieldError {
	for _, of := range []struct {
		name  string
		at    *time.Time
		since time.Time
		why   string
	}{
		{notBefore, &q.NotBefore, now.Add(-longPast), "was long ago, so it cannot be meant: leave it out to have the request sent at once"},
		{deliverBefore, &q.Expires, now, "has passed: the request would never be sent"},
	} {
		values := h[of.name]
		if len(values) == 0 {
			continue
		}
		at, err := instant(values[0])
		switch {
		case len(values) > 1:
			return &delivery.FieldError{Field: of.name, Reason: "stands in the request more than once"}
		case err != nil:
			return &delivery.FieldError{Field: of.name, Reason: "want an instant such as 2027-01-31T12:00:00Z"}
		case !at.After(of.since):
			return &delivery.FieldError{Field: of.name, Reason: at.UTC().Format(time.RFC3339) + " " + of.why}
		}
		*of.at = at
	}
	return nil
}

// instant reads one of RFC 3339 or of HTTP.
func instant(v string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return at, nil
	}
	return http.ParseTime(v)
}
