package proxy

import (
	"net/http"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// enableDuplex allows reading the body while the response is written, because an upstream may respond before it has
// read everything. Without it, the server ends the body when the response begins. Servers without this mode do not need
// it. It is enabled only for requests that are sent: the server itself handles a body that weir does not read.
func (t *trip) enableDuplex() {
	if !t.duplex && t.came.ProtoMajor == 1 && t.came.ContentLength != 0 {
		t.duplex = http.NewResponseController(t.answer).EnableFullDuplex() == nil
	}
}

// attempts is the transport of single attempts. It prepares each request before it is sent.
type attempts struct{ next http.RoundTripper }

func (a attempts) RoundTrip(r *http.Request) (*http.Response, error) {
	t := tripOf(r.Context())
	if t.exchange == nil {
		t.enableDuplex()
		r, traced := t.tells(r, false)
		resp, err := a.next.RoundTrip(r)
		answered(traced, resp)
		return resp, err
	}
	out := new(http.Request)
	*out = *r
	out.Header = r.Header.Clone()
	_, traced := t.tells(out, true) // before it is signed
	if err := t.exchange.Attempt(out); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	t.to.dropOwn(out.Header)
	t.enableDuplex()
	resp, err := a.next.RoundTrip(out)
	answered(traced, resp)
	if x, ok := t.exchange.(httpx.Failer); ok && err != nil {
		return nil, x.Failed(out.Context(), err)
	}
	if t.conducted() && err == nil {
		resp = untrailed(resp)
	}
	return resp, err
}

// untrailed returns a response without trailers. The transport writes trailers at the end of the body, which a
// conductor may reach while other goroutines read the response.
func untrailed(resp *http.Response) *http.Response {
	out := new(http.Response)
	*out = *resp
	out.Trailer = nil
	return out
}

// outerRefusal is the code of calls that the weir around this one refused.
const outerRefusal = "RefusedByOuterRun"

// judge asks the exchange what a response means. It first removes the headers with weir's prefix. If the upstream is
// itself a weir, they describe requests that the caller never made.
func (u *target) judge(resp *http.Response, o outcome.Outcome) outcome.Outcome {
	t := tripOf(resp.Request.Context())
	if u.Nested && resp.Header.Get(refuse.RefusedHeader) != "" {
		o = outcome.Outcome{Class: outcome.Rejected, Code: outerRefusal, Undone: true, Unsent: true, Hint: outcome.Hint{Advice: outcome.NotAgain}}
	}
	if t.conducted() {
		drop(resp.Header, "X-Weir-")
	} else {
		seal(resp)
	}
	if t.exchange != nil {
		return t.exchange.Answered(resp, o)
	}
	return o
}
