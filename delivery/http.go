package delivery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// HTTP sends deliveries to an HTTP API under its upstream's policy. They have low priority: direct calls that wait by
// priority go first. An HTTP is safe for concurrent use, but its fields must not change after first use.
type HTTP struct {
	Upstream *weir.Upstream
	URL      *url.URL          // scheme, host, and an optional prefix for paths
	Base     http.RoundTripper // adds credentials, if the API needs any; nil means a plain transport
}

var (
	_ Sender   = (*HTTP)(nil)
	_ Grouper  = (*HTTP)(nil)
	_ Hoster   = (*HTTP)(nil)
	_ Differer = (*HTTP)(nil)
)

// Send makes one attempt.
func (s *HTTP) Send(ctx context.Context, d *Delivery, launch func(context.CancelCauseFunc) error) Answer {
	r, t, err := s.request(ctx, d)
	if err != nil {
		return Answer{Err: err, Outcome: outcome.Outcome{Class: outcome.Rejected, Code: "bad path"}}
	}
	return Attempted(r, t.RoundTrip, launch).Within(s.Upstream.Policy().MaxPause)
}

// Host returns the host of the URL.
func (s *HTTP) Host() string { return s.URL.Host }

// Differs reports whether the other Sender has another upstream or URL. Either one may be embedded in a Sender outside
// this package.
func (s *HTTP) Differs(from Sender) bool {
	holder, ok := from.(interface{ http() *HTTP })
	if !ok {
		return true
	}
	other := holder.http()
	return other.Upstream != s.Upstream || other.URL.String() != s.URL.String()
}

func (s *HTTP) http() *HTTP { return s }

// Group groups deliveries by their operation.
func (s *HTTP) Group(d *Delivery) string {
	r, t, err := s.request(context.Background(), d)
	if err != nil {
		return ""
	}
	return GroupOf(t.CallOf(r))
}

func (s *HTTP) request(ctx context.Context, d *Delivery) (*http.Request, *httpx.Transport, error) {
	u := *s.URL
	u.RawQuery = d.Query
	raw := strings.TrimSuffix(s.URL.EscapedPath(), "/") + d.Path
	path, err := url.PathUnescape(raw)
	if err != nil {
		return nil, nil, err
	}
	u.Path, u.RawPath = path, raw
	r := NewRequest(ctx, d, &u)
	t := &httpx.Transport{Upstream: s.Upstream, Base: s.Base, Call: func(*http.Request) weir.Call {
		return weir.Call{ID: d.Correlation, Priority: limit.Low}
	}}
	return r, t, nil
}

// GroupOf returns the group of a delivery that is sent as the call c: its operation, its pool and the keys of its
// limits.
func GroupOf(c weir.Call) string {
	parts := []string{c.Operation, c.Pool}
	for _, scope := range slices.Sorted(maps.Keys(c.Keys)) {
		parts = append(parts, scope, c.Keys[scope])
	}
	return strings.Join(parts, "\x00")
}

// NewRequest returns the HTTP request of a delivery. Its idempotency key is the same for all attempts.
func NewRequest(ctx context.Context, d *Delivery, u *url.URL) *http.Request {
	r := &http.Request{Method: d.Method, URL: u, Host: u.Host, Header: d.Header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if r.Header == nil {
		r.Header = make(http.Header)
	}
	r.Header.Set("Idempotency-Key", upstreamKey(d))
	if d.Large.Name != "" {
		r.Body, r.ContentLength = http.NoBody, d.Large.Size
		if l := BodyOf(ctx); l != nil {
			r.Body = l
		}
	}
	if len(d.Body) > 0 {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(d.Body)), int64(len(d.Body))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(d.Body)), nil }
	}
	return r.WithContext(ctx)
}

// upstreamKey returns the caller's key or, without one, the ID. The upstream sees all named callers as one. To keep
// their keys apart, the result includes the tenant. Otherwise the upstream could answer one caller with the result of
// another.
func upstreamKey(d *Delivery) string {
	switch {
	case d.Key == "":
		return d.ID
	case d.Tenant == "":
		return d.Key
	}
	sum := sha256.Sum256([]byte(d.Tenant + "\x00" + d.Key))
	return hex.EncodeToString(sum[:16])
}

// Attempted makes one attempt by a round trip under a policy, and reads the beginning of the response.
func Attempted(r *http.Request, roundTrip func(*http.Request) (*http.Response, error), launch func(context.CancelCauseFunc) error) Answer {
	var trace weir.Trace
	var end httpx.Ending
	ctx := httpx.WithTrace(httpx.WithEnding(httpx.WithLaunch(weir.Once(r.Context()), signing(r, launch)), &end), &trace)
	resp, err := roundTrip(r.WithContext(ctx))
	a := Answer{Outcome: trace.Outcome, Err: err, Probed: trace.Probed}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
			a.Err = cause
		}
		return a
	}
	defer resp.Body.Close()
	a.Status = resp.StatusCode
	if resp.StatusCode < http.StatusOK { // after 101, the body is another protocol and may not end
		a.Outcome.Class, a.Outcome.Code = outcome.Failed, fmt.Sprintf("%d, which is not a final status", resp.StatusCode)
		return a
	}
	if redirects(r, resp) {
		a.Outcome.Class, a.Outcome.Code = outcome.Rejected, redirected(resp)
	}
	a.Body, err = io.ReadAll(io.LimitReader(resp.Body, MaxAnswer))
	if err == nil {
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // allows reuse of the connection
	}
	_ = resp.Body.Close()
	a.ends(&end)
	return a
}

// ends adds what the body of a success shows. An error that it reports itself is the result of the attempt. If it breaks off, the
// upstream has confirmed by its status that it did the work, and a repetition would do the work twice.
func (a *Answer) ends(end *httpx.Ending) {
	failed := end.Outcome.Class == outcome.Failed || end.Outcome.Class == outcome.Throttled || end.Outcome.Class == outcome.Rejected
	switch {
	case a.Outcome.Class != outcome.OK || !failed:
	case end.Whole:
		a.Outcome = end.Outcome
	default:
		a.Outcome.Code = "the response body broke off: " + end.Outcome.Code
	}
}

// redirects reports whether a response is a redirect: the upstream did nothing, and deliveries do not follow redirects.
// A 304 is a proper response to a conditional request.
func redirects(r *http.Request, resp *http.Response) bool {
	conditional := r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != ""
	return resp.StatusCode >= 300 && resp.StatusCode < 400 && !(conditional && resp.StatusCode == http.StatusNotModified)
}

// redirected describes a redirect by its host only, because paths and queries may contain secrets.
func redirected(resp *http.Response) string {
	where := "elsewhere"
	if at, err := resp.Location(); err == nil && at.Host != "" {
		where = "to " + at.Host
	}
	return fmt.Sprintf("%d: redirect to %s, which deliveries do not follow: change the upstream's url or the request's path, and redrive it", resp.StatusCode, where)
}

// Within limits the wait that the response asks for to most, as max_pause limits pauses. The wait for a quota is not
// limited.
func (a Answer) Within(most time.Duration) Answer {
	if h := &a.Outcome.Hint; !h.Quota {
		h.After = min(h.After, most)
	}
	return a
}
