package proxy

import (
	"io"
	"net/http"

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

// mostDrained is as much of a body as the server itself reads to keep a connection.
const mostDrained = 256 << 10

// drain reads what is left of a body once the answer is on its way. The server would do
// it, too, but in this mode only after it has stopped watching the connection: when it
// then comes to the body's end it watches again, and its next read panics ("invalid
// concurrent Body.Read call", Go 1.26).
func (t *trip) drain() {
	if !t.duplex || t.came.ContentLength > mostDrained {
		return
	}
	_ = http.NewResponseController(t.answer).Flush()
	_, _ = io.CopyN(io.Discard, t.body, mostDrained+1)
}

// attempts is the transport of single attempts: it makes each ready to be sent.
type attempts struct{ next http.RoundTripper }

func (a attempts) RoundTrip(r *http.Request) (*http.Response, error) {
	t := tripOf(r.Context())
	if t.exchange == nil {
		t.enableDuplex()
		return a.next.RoundTrip(r)
	}
	out := new(http.Request)
	*out = *r
	out.Header = r.Header.Clone()
	if err := t.exchange.Attempt(out); err != nil {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, err
	}
	t.to.dropOwn(out.Header)
	t.enableDuplex()
	return a.next.RoundTrip(out)
}

// judge asks the exchange what an answer means. What it says in weir's name is taken off
// before: were the upstream a weir too, it would speak of requests that the caller never
// made.
func judge(resp *http.Response, o outcome.Outcome) outcome.Outcome {
	seal(resp)
	if x := tripOf(resp.Request.Context()).exchange; x != nil {
		return x.Answered(resp, o)
	}
	return o
}
