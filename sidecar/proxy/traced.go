package proxy

import (
	"cmp"
	"net/http"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/observe/trace"
)

// Traced has requests traced that come from now on; the Events of the tracer must be among those of the upstreams.
func (p *Proxy) Traced(t *trace.Tracer) { p.tracer.Store(t) }

// traces begins the trace of a request, or goes on with its caller's.
func (t *trip) traces(tracer *trace.Tracer) {
	if tracer != nil {
		t.trace = tracer.Request(t.came, methodName(t.came.Method)+" "+t.to.Name, t.route.Path)
	}
}

// joins begins the span of an attempt of a delivery, within the trace that its request was stored with, however long ago.
func (t *trip) joins(tracer *trace.Tracer, d *delivery.Delivery) {
	if tracer == nil {
		return
	}
	t.trace = tracer.Joins(d.Header, trace.About{Kind: trace.Consumer, Name: "deliver " + methodName(d.Method) + " " + t.to.Name, Method: d.Method})
	t.trace.Note(trace.Text(trace.AttrDelivery, d.ID), trace.Number(trace.AttrSeries, int64(d.Starts)))
}

// keepsTrace has a request that is to be stored tell which trace it belongs to, if its caller has not: its deliveries go on with
// that in which it was accepted.
func (t *trip) keepsTrace(h http.Header) {
	if t.trace != nil && len(h["Traceparent"]) == 0 && len(h["X-Amzn-Trace-Id"]) == 0 {
		t.trace.Within(h)
	}
}

// methodName is a method as it stands in the names of spans, of which there must not be too many.
func methodName(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return method
	}
	return "HTTP"
}

// note is what the call's record is to have; nil if nobody traces it.
func (t *trip) note() any {
	if t.trace == nil {
		return nil
	}
	return t.trace
}

// traced ends the request's trace.
func (t *trip) traced() {
	if t.trace == nil {
		return
	}
	end := trace.Answer{Status: cmp.Or(t.brought, t.said), Err: t.cut}
	if t.came.Context().Err() != nil {
		end.Err = nil // it is the caller who left
	}
	t.trace.End(end)
}

// tells says in the request of an attempt which trace it belongs to. own says that the header is the attempt's own;
// else that of an attempt after the first may still be read by the one before.
func (t *trip) tells(r *http.Request, own bool) (*http.Request, trace.Attempt) {
	if t.trace == nil {
		return r, trace.Attempt{}
	}
	a := t.trace.Next()
	if !own && !a.First() {
		out := new(http.Request)
		*out = *r
		out.Header = r.Header.Clone()
		r = out
	}
	a.Header(r.Header)
	return r, a
}

// answered notes what an attempt was answered.
func answered(a trace.Attempt, resp *http.Response) {
	if resp != nil {
		a.Answered(resp.StatusCode)
	}
}
