package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/veil"
)

// A letter is the stored form of a request. Its body counts against the process's memory for bodies until release is
// called.
type letter struct {
	delivery.Request
	late    *NotAccepted // why it must not be stored as a new delivery; nil if it may be
	release func()
}

// letter returns the stored form of a request, or why it cannot be stored.
func (t *trip) letter(r *http.Request, to Accepter) (*letter, *NotAccepted) {
	bad := func(why, field, reason string) (*letter, *NotAccepted) { return nil, badField(why, field, reason) }
	at := *r.URL
	t.who.hide(make(http.Header), &at)
	if field, reason := t.secret(r.Header, at.RawQuery); field != "" {
		return bad(notCredential, field, reason)
	}
	if r.Header.Get("Upgrade") != "" {
		return bad(notRequest, "Upgrade", "a connection cannot be opened later")
	}
	q := new(letter)
	q.Request = delivery.Request{Tenant: t.who.Name, Owner: t.who.Name, Upstream: t.to.Name, Method: r.Method, Path: t.path, Query: at.RawQuery,
		Header: t.kept(r.Header), Stop: t.to.Stop, Callback: t.to.Callback, Correlation: t.id}
	if name, what := reveals(q.Header); name != "" {
		return bad(notCredential, name, doc.Quote(what)+" in it looks like a credential, and credentials are not stored: send the request without Prefer: respond-async")
	}
	if name := loses(r.Header, q.Header); name != "" {
		return bad(notCondition, name, "is not stored, and the request depends on it: send the request without Prefer: respond-async, or add the header to deliver_headers")
	}
	var err error
	if q.Key, err = delivery.ParseKey(r.Header); err != nil {
		return bad(notRequest, "Idempotency-Key", err.Error())
	}
	var reason string
	if q.OrderKey, reason = orderOf(r.Header); reason != "" {
		return bad(notRequest, orderKey, reason)
	}
	now := time.Now()
	if wrong := times(r.Header, &q.Request, now); wrong != nil {
		return bad(notRequest, wrong.Field, wrong.Reason)
	}
	if q.Late != nil {
		q.late = badField(notRequest, q.Late.Field, q.Late.Reason)
	} else if q.Late = t.lasts(r, &q.Request, now); q.Late != nil {
		q.late = badField(notToken, q.Late.Field, q.Late.Reason)
	}
	if q.late != nil && q.Key == "" {
		return nil, q.late
	}
	if not := t.holds(r, q, to); not != nil {
		return nil, not
	}
	return q, nil
}

// secret names a credential in the request that must not be stored, with advice for the caller.
func (t *trip) secret(h http.Header, rawQuery string) (field, reason string) {
	for name, v := range h {
		if name != TokenHeader && veil.Secret(name) && !slices.Contains(t.who.Shown, name) && !t.renewed(name, v[0]) {
			return name, "credentials are not stored, and the upstream would refuse the request without them: send it without Prefer: respond-async, or configure the upstream's credentials (credentials, aws)"
		}
	}
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "query", "cannot be read, so it may contain credentials: " + err.Error()
	}
	for name := range query {
		if veil.Secret(name) {
			return name, "looks like a credential in the query, and credentials are not stored: send the request without Prefer: respond-async"
		}
	}
	return "", ""
}

// Headers by which callers control a later delivery. They are for weir and are not forwarded.
const (
	notBefore     = "Weir-Not-Before"
	deliverBefore = "Weir-Deliver-Before"
	orderKey      = "Weir-Order-Key"
)

// unsaid deletes these headers from a request that is forwarded immediately.
func unsaid(h http.Header) {
	for _, name := range []string{notBefore, deliverBefore, orderKey} {
		delete(h, name)
	}
}

// orderOf returns the order key of a request, or "" if it has none.
func orderOf(h http.Header) (key, reason string) {
	values := h[orderKey]
	switch {
	case len(values) == 0:
		return "", ""
	case len(values) > 1:
		return "", "is in the request more than once"
	case strings.TrimSpace(values[0]) == "":
		return "", "is empty"
	}
	return values[0], ""
}

// longPast is how far in the past Weir-Not-Before may be. Such a request is sent immediately.
const longPast = 24 * time.Hour

// times reads the delivery times of a request and returns an error for invalid ones. A time that has passed is recorded
// in q.Late.
func times(h http.Header, q *delivery.Request, now time.Time) *delivery.FieldError {
	for _, of := range []struct {
		name  string
		at    *time.Time
		since time.Time
		why   string
	}{
		{notBefore, &q.NotBefore, now.Add(-longPast), "is too far in the past: leave it out to send the request immediately"},
		{deliverBefore, &q.Expires, now, "has passed: the request would never be sent"},
	} {
		values := h[of.name]
		if len(values) == 0 {
			continue
		}
		at, err := instant(values[0])
		switch {
		case len(values) > 1:
			return &delivery.FieldError{Field: of.name, Reason: "is in the request more than once"}
		case err != nil:
			return &delivery.FieldError{Field: of.name, Reason: "want a time such as 2027-01-31T12:00:00Z"}
		case !at.After(of.since) && q.Late == nil:
			q.Late = &delivery.FieldError{Field: of.name, Reason: at.UTC().Format(time.RFC3339) + " " + of.why}
		}
		*of.at = at
	}
	return nil
}

// instant parses a time in the format of RFC 3339 or HTTP.
func instant(v string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, v); err == nil {
		return at, nil
	}
	return http.ParseTime(v)
}
