package proxy

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/veil"
)

// usual lists headers that describe a request and not its caller.
var usual = []string{"Accept", "Accept-Language", "Content-Encoding", "Content-Language", "Content-Type", "User-Agent",
	"Title", "Priority", "Tags", "Click", "Markdown", "Icon", "Filename", "Actions", // ntfy's
	"Webhook-Id", "Webhook-Timestamp", "Traceparent", "Tracestate", "X-Amzn-Trace-Id"}

// kept returns the headers of a request that are stored: the usual ones, headers that the configuration or the dialect
// names, and headers from which limits read their keys.
func (t *trip) kept(h http.Header) http.Header {
	out := make(http.Header)
	names := slices.Concat(usual, t.to.Keep)
	for _, from := range t.to.Keys {
		if from.Kind == httpx.FromHeader && !veil.Secret(from.Name) {
			names = append(names, from.Name)
		}
	}
	later, _ := t.to.Dialect.(httpx.Later)
	for name, v := range h {
		if len(v) > 0 && (slices.Contains(names, name) || later != nil && later.Keeps(name) && !veil.Secret(name)) {
			out[name] = slices.Clone(v)
		}
	}
	return out
}

// meant lists headers that change the meaning of a request: conditions, the range of its body, and method overrides.
var meant = []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Content-Range",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// loses returns the name of such a header that would not be stored, or "" if there is none.
func loses(h, kept http.Header) string {
	for _, name := range meant {
		if h[name] != nil && kept[name] == nil {
			return name
		}
	}
	return ""
}

// renewed reports whether a caller's credential need not be stored because weir replaces it when it sends.
func (t *trip) renewed(name, value string) bool {
	if t.to.Sends[name] != nil {
		return true
	}
	later, ok := t.to.Dialect.(httpx.Later)
	return ok && later.Renews(name, value)
}

// hearLater has the dialect check a request before it is stored. It does not change the request.
func (t *trip) hearLater(r *http.Request) *refuse.Facts {
	if t.to.Dialect == nil {
		return nil
	}
	heard := r.Clone(r.Context())
	x, f := t.to.Dialect.Hear(heard, t.path)
	t.exchange, r.Body = x, heard.Body
	return f
}

// lasts refuses a delivery that could outlive the caller's token, and otherwise makes the delivery expire with the
// token.
func (t *trip) lasts(r *http.Request, q *delivery.Request, now time.Time) *delivery.FieldError {
	end := t.tokenEnds(r)
	if end.IsZero() {
		return nil
	}
	q.TokenEnds = end
	last := q.Expires
	if last.IsZero() {
		s, _ := delivery.ScheduleOf(t.to.Schedule)
		if last = now; q.NotBefore.After(last) {
			last = q.NotBefore
		}
		last = last.Add(s.Longest())
	}
	if last.After(end) {
		return &delivery.FieldError{Field: "Weir-Deliver-Before",
			Reason: "the delivery could still be attempted after the caller's token expires, at " + end.UTC().Format(time.RFC3339) + ": set an earlier Weir-Deliver-Before, or send a token that lasts longer"}
	}
	if q.Expires.IsZero() { // an earlier time from the caller has precedence
		q.Expires = end
	}
	return nil
}

// tokenEnds returns when the caller's certificate or token (JWT) expires, or the zero time if that is unknown. It does
// not verify the token: a false expiry can only shorten the caller's own delivery.
func (t *trip) tokenEnds(r *http.Request) (end time.Time) {
	sooner := func(at time.Time) {
		if end.IsZero() || at.Before(end) {
			end = at
		}
	}
	if a := t.table.access.Auth; a != nil && a.ClientCAs != nil && r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		sooner(r.TLS.PeerCertificates[0].NotAfter)
	}
	for _, secret := range presented(r) {
		if at, ok := expiry(secret); ok {
			sooner(at)
		}
	}
	return end
}

// expiry returns the expiry that a JWT states.
func expiry(token string) (time.Time, bool) {
	part := strings.Split(token, ".")
	if len(part) != 3 {
		return time.Time{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(part[1])
	var claims struct{ Exp float64 }
	if err != nil || json.Unmarshal(text, &claims) != nil || !(claims.Exp > 0 && claims.Exp < never) {
		return time.Time{}, false
	}
	return time.Unix(int64(claims.Exp), 0), true
}

// never is the end of the year 9999, after which RFC 3339 cannot represent a time. A token that expires later counts as
// unlimited.
const never = 253402300800
