package httpx

import (
	"cmp"
	"net/http"
	"sync"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// A Transport sends HTTP requests under an upstream's policy. Give it to an
// http.Client, which then waits for its turn and retries by itself.
//
// If the last attempt brought an answer, the caller gets it as it came, however
// it ended; a Trace in the request's context tells what happened on the way. If
// it brought none, the error is that of Do. Timeouts run in real time, whatever
// the upstream's clock: net/http knows no other.
type Transport struct {
	Upstream *weir.Upstream
	Base     http.RoundTripper // nil means one made by the policy's timeouts

	// Call says what a request costs and whose it is; nil means one request of
	// the operation that the policy finds. Operation and Safe are filled in if
	// they are empty.
	Call func(*http.Request) weir.Call

	// Replay is how much of a body is kept to send it again; 0 means
	// DefaultReplay, below 0 means nothing. A larger body is sent, but once.
	Replay int64

	// Strict refuses a request, with ErrNoRoom, if the process has no room in memory to keep what is to be kept
	// of its body. Otherwise the body is sent, but once.
	Strict bool

	// Judge looks further into an answer than its status and header: it is given what
	// those say and returns what is believed. It may read of the body if it puts back
	// what it read, and put a Meter in its place; the attempt's timeout runs until it
	// returns. nil means what status and header say.
	Judge func(*http.Response, outcome.Outcome) outcome.Outcome

	once     sync.Once
	base     http.RoundTripper
	expiries sync.Pool // of *expiry
}

// NewTransport is a Transport for the upstream with the defaults; base may be nil.
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
