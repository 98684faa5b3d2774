package proxy

import (
	"cmp"
	"net/http"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/observe/trace"
)

// Traced enables tracing of new requests. The Events of the tracer must be among the upstreams' events.
func (p *Proxy) Traced(t *trace.Tracer) { p.tracer.Store(t) }

// traces begins the trace of a request, or continues the caller's.
func (t *trip) traces(tracer *trace.Tracer) {
	if tracer != nil {
		t.trace = tracer.Request(t.came, methodName(t.came.Method)+" "+t.to.Name, t.route.Path)
	}
}

// joins begins the span of a delivery attempt within the trace that is stored with its request.
func (t *trip) joins(tracer *trace.Tracer, d *delivery.Delivery) {
	if tracer == nil {
		return
	}
	t.trace = tracer.Joins(d.Header, trace.About{Kind: trace.Consumer, Name: "deliver " + methodName(d.Method) + " " + t.to.Name, Method: d.Method})
	t.trace.Note(trace.Text(trace.AttrDelivery, d.ID), trace.Number(trace.AttrSeries, int64(d.Starts)))
}

// keepsTrace adds the current trace to a request that is about to be stored, unless the caller sent one. Its deliveries
// continue that trace.
func (t *trip) keepsTrace(h http.Header) {
	if t.trace != nil && len(h["Traceparent"]) == 0 && len(h["X-Amzn-Trace-Id"]) == 0 {
		t.trace.Within(h)
	}
}

// methodName returns the method for a span name. Unusual methods become "HTTP" to limit the number of names.
func methodName(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions:
		return method
	}
	return "HTTP"
}

// note returns the trace for the call's record, or nil if the call is not traced.
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
		end.Err = nil // the caller disconnected
	}
	t.trace.End(end)
}

// tells adds the trace to the request of an attempt. own means that the request has its own header map. Otherwise an
// earlier attempt may still read the map, so later attempts get a copy.
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

// answered records the response of an attempt.
func answered(a trace.Attempt, resp *http.Response) {
	if resp != nil {
		a.Answered(resp.StatusCode)
	}
}
