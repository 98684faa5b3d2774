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

// usual are headers that say what a request is, and nothing of its caller.
var usual = []string{"Accept", "Accept-Language", "Content-Encoding", "Content-Language", "Content-Type", "User-Agent",
	"Title", "Priority", "Tags", "Click", "Markdown", "Icon", "Filename", "Actions", // ntfy's
	"Webhook-Id", "Webhook-Timestamp", "Traceparent", "Tracestate", "X-Amzn-Trace-Id"}

// kept are the headers of a request that are stored: the usual ones, those that the upstream's
// configuration or dialect names, and those by which its limits tell callers apart.
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

// meant are headers without which a request means another thing: its conditions, of what its body is a part, and what it is
// instead of what its method says.
var meant = []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "If-Range", "Content-Range",
	"X-Http-Method-Override", "X-Http-Method", "X-Method-Override"}

// loses is one of those of a request that would not be kept; "" if there is none.
func loses(h, kept http.Header) string {
	for _, name := range meant {
		if h[name] != nil && kept[name] == nil {
			return name
		}
	}
	return ""
}

// renewed reports whether a credential of the caller's need not be kept, as weir puts one of its own in
// its place when it sends.
func (t *trip) renewed(name, value string) bool {
	if t.to.Sends[name] != nil {
		return true
	}
	later, ok := t.to.Dialect.(httpx.Later)
	return ok && later.Renews(name, value)
}

// hearLater has the dialect say what is wrong with a request before it is stored. The request stays as it came.
func (t *trip) hearLater(r *http.Request) *refuse.Facts {
	if t.to.Dialect == nil {
		return nil
	}
	heard := r.Clone(r.Context())
	x, f := t.to.Dialect.Hear(heard, t.path)
	t.exchange, r.Body = x, heard.Body
	return f
}

// lasts refuses a delivery that would outlive the token of its caller, and bounds others by it.
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
	if q.Expires.IsZero() { // what the caller said is earlier
		q.Expires = end
	}
	return nil
}

// tokenEnds is when what the caller has shown ends: a certificate, or a token that says so itself (JWT). The zero
// Time means that nobody knows. A token is not checked here: what it says can only shorten its own delivery.
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

// expiry is what a JWT says of its end.
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

// never is the end of the year 9999, after which no instant can be written (RFC 3339): a token that lasts longer has no end.
const never = 253402300800
