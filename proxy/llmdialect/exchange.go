package llmdialect

import (
	"context"
	"net/http"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/proxy"
)

// A stopper ends an attempt, and says why.
type stopper context.CancelCauseFunc

// Attempt is proxy.Exchange's: the request gets weir's key, and asks for an answer that
// can be read.
func (x *exchange) Attempt(r *http.Request) error {
	ctx, stop := context.WithCancelCause(r.Context())
	x.stop = stopper(stop)
	*r = *r.WithContext(ctx)
	if x.d.o.Key != "" {
		at := *r.URL
		r.URL = &at
		x.d.authorize(r)
	}
	if x.request != nil {
		r.Header.Del("Accept-Encoding")
	}
	if x.inner != nil {
		return x.inner.Attempt(r)
	}
	return nil
}

// Answered is proxy.Exchange's.
func (x *exchange) Answered(resp *http.Response, o outcome.Outcome) outcome.Outcome {
	if x.inner != nil {
		o = x.inner.Answered(resp, o)
	}
	if o.Class != outcome.OK || x.request == nil || resp.StatusCode != http.StatusOK {
		return o
	}
	m := newMeter(x, resp)
	resp.Body = m
	if bad, ok := m.begin(); !ok {
		bad.Hint.Limits = o.Hint.Limits
		return bad
	}
	return o
}

// Refuse is proxy.Exchange's.
func (x *exchange) Refuse(w http.ResponseWriter, f *proxy.Failure) {
	x.route.Refuse(w, llm.Failure{Status: f.Status, Kind: kindOf(f), Message: f.Message, Final: f.Final, RetryAfter: f.RetryAfter, ID: w.Header().Get(proxy.CorrelationHeader)})
}

func kindOf(f *proxy.Failure) llm.Kind {
	switch f.Reason {
	case "":
	case weir.QuotaExhausted:
		return llm.Exhausted
	case weir.CircuitOpen, weir.BudgetExhausted:
		return llm.Unavailable
	default:
		return llm.Limited
	}
	switch {
	case f.Status == http.StatusRequestEntityTooLarge:
		return llm.TooLarge
	case f.Status == http.StatusGatewayTimeout:
		return llm.Timeout
	case f.Status < http.StatusInternalServerError:
		return llm.Invalid
	case f.Status == http.StatusServiceUnavailable:
		return llm.Unavailable
	}
	return llm.GaveUp
}
