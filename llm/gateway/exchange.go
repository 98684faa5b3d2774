package gateway

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/outcome"
)

// A stopper ends an attempt with a cause.
type stopper context.CancelCauseFunc

// Attempt implements httpx.Exchange. It sets weir's key, and asks for an answer without encoding, because weir reads it.
func (x *exchange) Attempt(r *http.Request) error {
	ctx, stop := context.WithCancelCause(r.Context())
	x.stop, x.sent = stopper(stop), time.Now()
	b := progressOf(ctx)
	if b != nil {
		if x.nested { // a request of another tier; Conduct has set the attributes of the request's own span
			x.asks(trace.CallOf(ctx))
		}
		b.worthless = nil
		if err := b.again(); err != nil {
			return err
		}
	}
	*r = *r.WithContext(ctx)
	if x.d.o.Key != "" {
		at := *r.URL
		r.URL = &at
		x.d.authorize(r, cmp.Or(x.d.o.Family, x.route.Family), x.azure)
	}
	x.d.anonymous(r.Header)
	for name := range r.Header { // these headers are for weir only
		if strings.HasPrefix(name, "X-Weir-") {
			delete(r.Header, name)
		}
	}
	if x.request != nil {
		r.Header["Accept-Encoding"] = []string{"identity"}
	}
	if x.inner != nil {
		if err := x.inner.Attempt(r); err != nil {
			return err
		}
	}
	if b != nil {
		b.by.Store(x)
		b.open.Store(x)
	}
	return nil
}

// Answered implements httpx.Exchange.
func (x *exchange) Answered(resp *http.Response, o outcome.Outcome) outcome.Outcome {
	b := progressOf(resp.Request.Context())
	if b != nil {
		b.open.Store(nil)
	}
	if x.inner != nil {
		o = x.inner.Answered(resp, o)
	}
	if x.request == nil {
		return o
	}
	if o.Class == outcome.Rejected || o.Class == outcome.Throttled {
		o.Usage = nothing // a refused call has used no tokens
		return o
	}
	if o.Class == outcome.OK && resp.StatusCode != http.StatusOK && x.route.Generates {
		bad := notAnswer
		bad.Hint.Limits = o.Hint.Limits
		return bad
	}
	if o.Class != outcome.OK || resp.StatusCode != http.StatusOK {
		return o
	}
	m := newMeter(x, resp, b)
	resp.Body = m
	bad, ok := m.begin()
	if ok {
		x.d.began.of(x).Add(time.Since(x.sent))
		return o
	}
	if b != nil && m.reader.Failed() == nil {
		if b.worthless = m.err; !broken(m.err) {
			b.open.Store(x)
		}
	}
	bad.Hint.Limits = o.Hint.Limits
	return bad
}

// Refuse implements httpx.Exchange.
func (x *exchange) Refuse(w http.ResponseWriter, f *refuse.Facts) {
	if x.inner != nil && x.route.Operation == other {
		x.inner.Refuse(w, f)
		return
	}
	x.route.Refuse(w, llm.FailureOf(f, w.Header().Get(httpx.CorrelationHeader)))
}
