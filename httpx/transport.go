package httpx

import (
	"cmp"
	"net/http"
	"sync"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// A Transport sends HTTP requests under an upstream's policy. Use it in an http.Client, which then waits for its turn and
// retries.
//
// If the last attempt has a response, the caller gets it unchanged, with any status. A Trace in the request's context describes
// the attempts. Without a response, the error is as for Do. Timeouts run in real time even if the upstream has another clock,
// because net/http only supports real time. A Transport is safe for concurrent use, but its fields must not change after first
// use.
type Transport struct {
	Upstream *weir.Upstream
	Base     http.RoundTripper // nil means a transport with the policy's timeouts

	// Call returns the cost and the keys of a request; nil means one request of the operation that the policy determines.
	// Operation and Safe are filled in if they are empty.
	Call func(*http.Request) weir.Call

	// Replay is the size up to which a body is kept to be sent again; 0 means DefaultReplay, negative means none. A larger body
	// is sent only once.
	Replay int64

	// Strict refuses a request, with ErrNoRoom, if the process has no memory to keep its body up to Replay. Otherwise the body is
	// sent only once.
	Strict bool

	// Judge can examine a response further. It receives the outcome by status and header, and returns the outcome that counts. It
	// may read from the body if it puts back what it read, and may replace the body by a Meter. The attempt's timeout runs until
	// Judge returns. nil means the outcome by status and header.
	Judge func(*http.Response, outcome.Outcome) outcome.Outcome

	once     sync.Once
	base     http.RoundTripper
	expiries sync.Pool // of *expiry
}

// NewTransport returns a Transport for the upstream with the defaults. base may be nil.
func NewTransport(u *weir.Upstream, base http.RoundTripper) *Transport {
	return &Transport{Upstream: u, Base: base}
}

// RoundTrip sends a request under the policy.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	call := t.call(req)
	s := sender{t: t, req: req, safe: call.Safe, run: t.Upstream.Begin(req.Context(), call), replay: newReplay(req, t.replayLimit())}
	defer s.replay.end()
	defer s.run.End()
	s.replay.await(s.run.Policy().Timeouts, req.Header, call.Streams)
	if t.Strict {
		if err := s.replay.strict(req.ContentLength); err != nil {
			return nil, err
		}
	}
	if s.replay != nil {
		s.run.Ready = s.replay.ready
	}
	for s.run.Next() {
		s.send()
	}
	if trace, ok := req.Context().Value(traceKey{}).(*weir.Trace); ok {
		*trace = s.run.Trace()
	}
	return s.result()
}

func (t *Transport) replayLimit() int64 {
	if t.Replay < 0 {
		return 0
	}
	return cmp.Or(t.Replay, DefaultReplay)
}
