package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// sending sends each request through the transport of its upstream, or lets its exchange decide how it is answered.
type sending struct{}

func (sending) RoundTrip(r *http.Request) (*http.Response, error) {
	t := tripOf(r.Context())
	c, ok := t.exchange.(httpx.Conductor)
	if !ok {
		return t.send(r)
	}
	resp, err := c.Conduct(r, func(ctx context.Context, to httpx.Request) (*http.Response, weir.Trace, error) {
		return t.post(ctx, r, to)
	})
	if err == nil && resp.Request == nil {
		resp.Header[httpx.CorrelationHeader] = []string{t.id}
	}
	return resp, err
}

// conducted reports whether a conductor decides how the request is answered.
func (t *trip) conducted() bool {
	_, ok := t.exchange.(httpx.Conductor)
	return ok
}

// send sends a request to the trip's upstream.
func (t *trip) send(r *http.Request) (*http.Response, error) { return t.to.transport.RoundTrip(r) }

// post sends the request of the trip, or to instead.
func (t *trip) post(ctx context.Context, r *http.Request, to httpx.Request) (*http.Response, weir.Trace, error) {
	if to.Path == "" {
		resp, err := t.send(r.WithContext(t.in(ctx)))
		return resp, t.story, err
	}
	next, out, err := t.reroute(ctx, r, to)
	if err != nil {
		return nil, weir.Trace{}, err
	}
	resp, err := next.send(out)
	return resp, next.story, err
}

// reroute returns a new trip and a new request for to.
func (t *trip) reroute(ctx context.Context, r *http.Request, to httpx.Request) (*trip, *http.Request, error) {
	target := t.to
	if to.Upstream != "" {
		if target = t.table.targets[to.Upstream]; target == nil {
			return nil, nil, fmt.Errorf("proxy: unknown upstream %q", to.Upstream)
		}
	}
	next := &trip{to: target, path: to.Path, id: t.id, who: t.who, table: t.table, bounded: t.bounded, answer: t.answer, news: t.news, priority: &to.Priority, duplex: true, trace: t.trace.Part(target.Name)}
	out := r.Clone(next.in(ctx))
	out.Header = to.Header.Clone()
	out.Header[httpx.CorrelationHeader] = []string{t.id}
	out.Body, out.GetBody, out.ContentLength = io.NopCloser(bytes.NewReader(to.Body)), nil, int64(len(to.Body))
	out.Host, out.Trailer = target.URL.Host, nil
	in := *r.URL
	in.RawQuery, in.ForceQuery = to.Query, false
	t.who.hide(out.Header, &in)
	came := *t.came // keeps the caller
	came.Body, came.ContentLength = out.Body, out.ContentLength
	next.came = &came
	if target.Dialect != nil {
		heard := out.Clone(out.Context())
		heard.URL, heard.RequestURI, heard.Body = &in, "", out.Body
		x, f := target.Dialect.Hear(heard, to.Path)
		if f != nil {
			return nil, nil, f
		}
		next.exchange, out.Header, out.Body, out.ContentLength = x, heard.Header, heard.Body, heard.ContentLength
		came.Body = out.Body // so that the bytes that the dialect has read are not held as well
	}
	out.URL = address(target.URL, to.Path, &in)
	next.ownKeys(out.Header)
	return next, out, nil
}
