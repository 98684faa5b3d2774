package proxy

import (
	"net/http"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/outcome"
)

// enableDuplex lets the body be read on while the answer is written: an upstream may
// answer before it has read everything, and without it the server ends the body when
// the answer begins. Servers that cannot do not need it. It is done for requests that
// are sent only: the server deals with a body that nobody reads by itself.
func (t *trip) enableDuplex() {
	if !t.duplex && t.came.ProtoMajor == 1 && t.came.ContentLength != 0 {
		t.duplex = http.NewResponseController(t.answer).EnableFullDuplex() == nil
	}
}

// attempts is the transport of single attempts: it makes each ready to be sent.
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

// untrailed is an answer without trailers. The transport writes them when it comes to the body's
// end; a conductor may come to it while others look at the answer.
func untrailed(resp *http.Response) *http.Response {
	out := new(http.Response)
	*out = *resp
	out.Trailer = nil
	return out
}

// judge asks the exchange what an answer means. What it says in weir's name is taken off
// before: were the upstream a weir too, it would speak of requests that the caller never
// made.
func judge(resp *http.Response, o outcome.Outcome) outcome.Outcome {
	t := tripOf(resp.Request.Context())
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
