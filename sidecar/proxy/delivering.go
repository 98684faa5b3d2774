package proxy

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/outcome"
)

// Sender returns a sender of deliveries for an upstream, or nil if there is no such upstream. Deliveries are sent under
// the upstream's policy, with low priority.
func (p *Proxy) Sender(upstream string) delivery.Sender {
	t := p.table.Load()
	if t == nil || t.targets[upstream] == nil {
		return nil
	}
	return postman{t, t.targets[upstream], p.tracer.Load()}
}

// ScheduleOf returns the retry schedule of an upstream's deliveries.
func (p *Proxy) ScheduleOf(upstream string) delivery.Schedule {
	name := ""
	if to := p.table.Load().targets[upstream]; to != nil {
		name = to.Schedule
	}
	s, _ := delivery.ScheduleOf(name)
	return s
}

// GivesUp returns when an upstream's deliveries become dead letters without another attempt.
func (p *Proxy) GivesUp(upstream string) (g delivery.GiveUp) {
	if to := p.table.Load().targets[upstream]; to != nil {
		g = to.GivesUp
	}
	return g
}

var (
	_ delivery.Grouper  = postman{}
	_ delivery.Hoster   = postman{}
	_ delivery.Differer = postman{}
)

type postman struct {
	table  *table
	to     *target
	tracer *trace.Tracer // nil if requests are not traced
}

// Host returns the host of the upstream's URL.
func (s postman) Host() string { return s.to.URL.Host }

// Differs reports whether the configuration was reloaded since from was created.
func (s postman) Differs(from delivery.Sender) bool {
	other, ok := from.(postman)
	return !ok || other.table != s.table
}

// Send makes one attempt. It adds credentials and signatures at this point, as direct calls do.
func (s postman) Send(ctx context.Context, d *delivery.Delivery, launch func(context.CancelCauseFunc) error) delivery.Answer {
	out, t, f := s.request(ctx, d)
	if f != nil {
		return delivery.Answer{Err: f, Outcome: f.Outcome()}
	}
	defer t.end()
	t.joins(s.tracer, d)
	s.to.adds(out.Header)
	out.Header[httpx.CorrelationHeader] = []string{d.Correlation}
	a := delivery.Attempted(out.WithContext(t.in(ctx)), s.to.masks(s.to.transport.RoundTrip), launch).Within(s.to.weir.Policy().MaxPause)
	t.brought = a.Status
	if own, ok := errors.AsType[*refuse.Facts](a.Err); ok && own.Status >= http.StatusInternalServerError && a.Outcome.Class == outcome.Rejected {
		a.Outcome.Class = outcome.Failed // weir lacks something, such as credentials, which may become available
	}
	return a
}

// Group returns the group of a delivery: its operation and the keys of its limits.
func (s postman) Group(d *delivery.Delivery) string {
	if s.to.Dialect == nil { // the stored request determines them
		in, t := s.trip(d)
		out := &http.Request{Method: d.Method, URL: s.address(d, in), Header: d.Header}
		return delivery.GroupOf(s.to.transport.CallOf(out.WithContext(t.in(context.Background()))))
	}
	out, t, f := s.request(context.Background(), d)
	if f != nil {
		return ""
	}
	defer t.end()
	return delivery.GroupOf(s.to.transport.CallOf(out.WithContext(t.in(out.Context()))))
}

// request returns the request of a delivery, without the headers that are added when it is sent.
func (s postman) request(ctx context.Context, d *delivery.Delivery) (*http.Request, *trip, *refuse.Facts) {
	in, t := s.trip(d)
	out := delivery.NewRequest(ctx, d, s.address(d, in))
	s.to.dropForged(out.Header, false)
	s.to.dropOwn(out.Header)
	if f := t.hearAgain(out, in); f != nil {
		return nil, nil, f
	}
	return out, t, nil
}

// address returns the URL of a delivery. A callback without its own path goes to exactly the upstream's URL.
func (s postman) address(d *delivery.Delivery, in *url.URL) *url.URL {
	if path := s.to.URL.EscapedPath(); d.Tells != "" && d.Path == "/" && path != "" {
		return address(&url.URL{Scheme: s.to.URL.Scheme, Host: s.to.URL.Host}, path, in)
	}
	return address(s.to.URL, d.Path, in)
}

// trip returns the trip of a delivery, and the URL that its caller requested.
func (s postman) trip(d *delivery.Delivery) (*url.URL, *trip) {
	low := limit.Low
	in := &url.URL{Path: d.Path, RawQuery: d.Query}
	came := &http.Request{Method: d.Method, URL: in, RequestURI: in.RequestURI(), Header: d.Header, ContentLength: d.Size()}
	return in, &trip{to: s.to, path: d.Path, id: d.Correlation, who: guest{Name: d.Owner}, came: came, table: s.table, priority: &low, duplex: true}
}

// hearAgain passes a stored request to the dialect before it is sent.
func (t *trip) hearAgain(out *http.Request, in *url.URL) *refuse.Facts {
	if t.to.Dialect == nil {
		return nil
	}
	heard := out.Clone(t.in(out.Context()))
	heard.URL, heard.RequestURI = in, ""
	x, f := t.to.Dialect.Hear(heard, t.path)
	if f != nil {
		return f
	}
	t.exchange, out.Header, out.Body, out.GetBody = x, heard.Header, heard.Body, nil
	if p, ok := x.(httpx.Pather); ok && p.Path() != t.path {
		t.path = p.Path()
		out.URL = address(t.to.URL, t.path, in)
	}
	return nil
}
