package proxy

import (
	"context"
	"net/http"
	"net/url"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
)

// Sender sends deliveries for an upstream under the policy and on the way of its calls; nil if
// there is no such upstream. Calls go before them where callers wait by priority.
func (p *Proxy) Sender(upstream string) delivery.Sender {
	t := p.table.Load()
	if t == nil || t.targets[upstream] == nil {
		return nil
	}
	return postman{t, t.targets[upstream]}
}

// ScheduleOf is that by which an upstream's deliveries are sent again.
func (p *Proxy) ScheduleOf(upstream string) delivery.Schedule {
	name := ""
	if to := p.table.Load().targets[upstream]; to != nil {
		name = to.Schedule
	}
	s, _ := delivery.ScheduleOf(name)
	return s
}

type postman struct {
	table *table
	to    *target
}

// Send makes one attempt.
func (s postman) Send(ctx context.Context, d *delivery.Delivery, launch func(context.CancelCauseFunc) error) delivery.Answer {
	low := limit.Low
	in := &url.URL{Path: d.Path, RawQuery: d.Query}
	out := delivery.NewRequest(ctx, d, address(s.to.URL, d.Path, in))
	came := &http.Request{Method: d.Method, URL: in, RequestURI: in.RequestURI(), Header: d.Header, ContentLength: int64(len(d.Body))}
	t := &trip{to: s.to, path: d.Path, id: d.Correlation, who: guest{Name: d.Owner}, came: came, table: s.table, priority: &low, duplex: true}
	s.to.dropForged(out.Header)
	s.to.dropOwn(out.Header)
	out.Header[httpx.CorrelationHeader] = []string{d.Correlation}
	return delivery.Attempted(out.WithContext(t.in(ctx)), s.to.transport.RoundTrip, launch)
}
