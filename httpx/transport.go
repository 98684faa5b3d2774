package httpx

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
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

	once sync.Once
	base http.RoundTripper
}

// NewTransport is a Transport for the upstream with the defaults; base may be nil.
func NewTransport(u *weir.Upstream, base http.RoundTripper) *Transport {
	return &Transport{Upstream: u, Base: base}
}

// NewBase is the transport that a Transport without Base uses: the standard one
// with the policy's timeouts, enough idle connections for many callers, and
// nothing added to requests or unpacked from answers. keepIdle is how many idle
// connections are kept; 0 means 256. A connection that has fallen silent, as when the
// machine behind it is gone, is found out within half a minute: of HTTP/2, over which calls
// would go on to be made, by a ping, and an idle one of HTTP/1.1 by the system.
func NewBase(t weir.Timeouts, keepIdle int) *http.Transport {
	keepIdle = cmp.Or(keepIdle, 256)
	dialer := &net.Dialer{Timeout: max(0, t.Connect), KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}}
	return &http.Transport{
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   max(0, t.TLS),
		ResponseHeaderTimeout: max(0, t.Headers),
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          keepIdle,
		MaxIdleConnsPerHost:   keepIdle,
		IdleConnTimeout:       90 * time.Second,
		DisableCompression:    true,
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second},
	}
}

func (t *Transport) roundTripper() http.RoundTripper {
	if t.Base != nil {
		return t.Base
	}
	t.once.Do(func() { t.base = NewBase(BaseTimeouts(t.Upstream.Policy()), 0) })
	return t.base
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

// A sender is one request on its way.
type sender struct {
	t      *Transport
	req    *http.Request
	safe   bool
	run    *weir.Run
	replay *replay        // nil if there is no body
	resp   *http.Response // of the last attempt; nil if it brought none
}

// result is what the caller gets: no answer if it has left, as it could not read one.
func (s *sender) result() (*http.Response, error) {
	err := s.run.Err()
	if s.resp == nil {
		return nil, err
	}
	if s.req.Context().Err() == nil {
		return s.resp, nil
	}
	discard(s.resp)
	if err == nil { // the call came to an end just as its caller left
		err = context.Cause(s.req.Context())
	}
	return nil, err
}

// send makes one attempt, and reports how it ended.
func (s *sender) send() {
	r := s.run
	discard(s.resp)
	ctx, cancel := context.WithCancelCause(s.req.Context())
	s.replay.attempt(ctx, cancel, r)
	timer := s.times(cancel)
	resp, err := s.roundTrip(weir.Once(ctx), cancel, s.request())
	s.replay.answered()
	var o outcome.Outcome
	if err == nil {
		watch(resp, r.Policy().Timeouts, cancel)
		o = s.judge(resp, timer)
	} else {
		o, err = s.failed(ctx, err)
	}
	if !s.replay.repeatable() {
		r.NoMore(ErrBodyTooLarge)
	}
	timer.Stop()
	if s.resp = resp; resp == nil {
		cancel(context.Canceled)
	} else {
		if m, ok := resp.Body.(Meter); ok && o.Class == outcome.OK {
			resp.Body = meter(r, m)
		}
		resp.Body = releasing(resp.Body, cancel)
	}
	r.Report(o, err)
}

// failed classifies an attempt without an answer, and says why there is none.
func (s *sender) failed(ctx context.Context, err error) (outcome.Outcome, error) {
	cause := context.Cause(ctx)
	if cause == weir.ErrAttemptTimeout || cause == weir.ErrCallTimeout || cause == errHeaderTimeout {
		err = cause
	}
	own := s.replay.failure(cause)
	if own == nil && s.replay.broken() {
		own = fmt.Errorf("%w: %w", ErrRequestBody, cmp.Or(s.replay.full(), err))
	}
	if own != nil { // the caller's own body failed: that says nothing of the upstream
		s.run.Spoiled()
		return outcome.Outcome{Class: outcome.Canceled, Code: brokenBody}, own
	}
	return s.run.Classify(err), err
}

// request is the request of an attempt, without its context.
func (s *sender) request() *http.Request {
	if s.replay == nil {
		return s.req
	}
	req := new(http.Request)
	*req = *s.req
	req.Body, req.GetBody = s.replay.take(), nil // retries are made here, and nowhere below
	return req
}

// judge classifies an answer, with a look at the body if that can matter. A
// success whose body has to be looked at may come slowly: S3 says 200 before it
// knows. It has until the end of the call.
func (s *sender) judge(resp *http.Response, timer *time.Timer) outcome.Outcome {
	r := classify.Response{
		Method: s.req.Method, Status: resp.StatusCode, Reason: reason(resp),
		Header: resp.Header, Now: time.Now(),
	}
	if classify.NeedsBody(r.Method, r.Status, r.Header) {
		if resp.StatusCode < http.StatusMultipleChoices {
			timer.Reset(s.run.Left())
		}
		r.Body = peek(resp)
	}
	o := s.run.Policy().Classify.HTTP(r)
	judged := o
	if s.t.Judge != nil {
		judged = s.t.Judge(resp, o)
	}
	if judged.Code == o.Code { // and it is not that the rest did not come
		s.run.Answered()
	}
	return judged
}

// reason is the status line's text after the code.
func reason(resp *http.Response) string {
	if len(resp.Status) > 4 {
		return resp.Status[4:]
	}
	return ""
}

// peek reads a prefix of the body and puts it back.
func peek(resp *http.Response) []byte {
	b, err := io.ReadAll(io.LimitReader(resp.Body, classify.MaxBody))
	rest := io.Reader(resp.Body)
	if err != nil {
		rest = failing{err}
	}
	resp.Body = &peeked{io.MultiReader(bytes.NewReader(b), rest), resp.Body}
	return b
}

type peeked struct {
	io.Reader
	io.Closer
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// releasing is the body of an answer, whose end releases the attempt's context.
// That of a connection that changed its protocol can be written to, too.
func releasing(b io.ReadCloser, cancel context.CancelCauseFunc) io.ReadCloser {
	r := body{b, cancel}
	if rw, ok := b.(io.ReadWriteCloser); ok {
		return struct {
			io.Writer
			body
		}{rw, r}
	}
	return r
}

type body struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b body) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(context.Canceled)
	return err
}

// abandon gives up reading.
func (b body) abandon() { b.cancel(context.Canceled) }

// discardTime is how long the rest of an answer that nobody wants is waited for.
const discardTime = 100 * time.Millisecond

// discard ends an answer that the caller does not get. A little is read, so that
// the connection can be used again, but not of a body that is slow to come.
func discard(resp *http.Response) {
	if resp == nil {
		return
	}
	if b, ok := resp.Body.(interface{ abandon() }); ok {
		defer time.AfterFunc(discardTime, b.abandon).Stop()
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 16<<10)
	_ = resp.Body.Close()
}
