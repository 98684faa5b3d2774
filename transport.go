package weir

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/paths"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
	"github.com/seed1158cd35/weir/retry"
)

// A Transport sends HTTP requests under an upstream's policy. Give it to an
// http.Client, which then waits for its turn and retries by itself.
//
// If the last attempt brought an answer, the caller gets it as it came, however
// it ended; a Story in the request's context tells what happened on the way. If
// it brought none, the error is that of Do. Timeouts run in real time, whatever
// the upstream's clock: net/http knows no other.
type Transport struct {
	Upstream *Upstream
	Base     http.RoundTripper // nil means one made by the policy's timeouts

	// Call says what a request costs and whose it is; nil means one request of
	// the operation that the policy finds. Operation and Safe are filled in if
	// they are empty.
	Call func(*http.Request) Call

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

// Transport is a Transport for the upstream with the defaults.
func (u *Upstream) Transport(base http.RoundTripper) *Transport {
	return &Transport{Upstream: u, Base: base}
}

// NewBase is the transport that a Transport without Base uses: the standard one
// with the policy's timeouts, enough idle connections for many callers, and
// nothing added to requests or unpacked from answers. keepIdle is how many idle
// connections are kept; 0 means 256. A connection that has fallen silent, as when the
// machine behind it is gone, is found out within half a minute: of HTTP/2, over which calls
// would go on to be made, by a ping, and an idle one of HTTP/1.1 by the system.
func NewBase(t Timeouts, keepIdle int) *http.Transport {
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
	t.once.Do(func() { t.base = NewBase(t.Upstream.Policy().BaseTimeouts(), 0) })
	return t.base
}

// A Story is what became of a call. Put one into a request's context with
// WithStory before sending it.
type Story struct {
	Operation string
	Attempts  int
	Waited    time.Duration // for turns and between attempts
	Outcome   outcome.Outcome
	GaveUp    error // why there was no other attempt, if one was worth it
}

type storyKey struct{}

// WithStory is ctx with a story to be filled in by Transport.
func WithStory(ctx context.Context, s *Story) context.Context {
	return context.WithValue(ctx, storyKey{}, s)
}

// RoundTrip sends a request under the policy.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	s := sender{t: t, req: req}
	s.run = run{u: t.Upstream, call: t.call(req)}
	s.run.begin(req.Context())
	s.replay = newReplay(req, t.replayLimit())
	s.replay.await(s.run.live.policy.Timeouts, req.Header, s.run.call.Streams)
	defer s.replay.end()
	if t.Strict {
		if err := s.replay.strict(req.ContentLength); err != nil {
			return nil, err
		}
	}
	for !s.send() {
	}
	if story, ok := req.Context().Value(storyKey{}).(*Story); ok {
		*story = Story{s.run.plan.name, s.run.attempts, s.run.waited, s.run.outcome, s.run.why()}
	}
	return s.result()
}

func (t *Transport) replayLimit() int64 {
	if t.Replay < 0 {
		return 0
	}
	return cmp.Or(t.Replay, DefaultReplay)
}

// call is what the policy needs to know of a request.
func (t *Transport) call(req *http.Request) Call {
	var c Call
	if t.Call != nil {
		c = t.Call(req)
	}
	v := t.Upstream.live.Load()
	policy, o := &v.policy, v.other.op
	if policy.Undeclared && c.Operation != "" && v.plans[c.Operation] == nil {
		c.API, c.Operation = cmp.Or(c.API, c.Operation), "" // the API's own name for one of a class
	}
	path := paths.Read(rawPath(req.URL))
	for i := range policy.Operations {
		if p := &policy.Operations[i]; p.Name == c.Operation || c.Operation == "" && p.matches(req.Method, &path) {
			o = p
			break
		}
	}
	c.Operation = cmp.Or(c.Operation, o.Name)
	c.Safe = c.Safe || o.safe(req.Method, req.Header)
	return c
}

// rawPath is the path as it will be sent. A URL that holds it in Opaque does so
// because Go would write it differently; if it begins with two slashes, the host
// is written before it.
func rawPath(u *url.URL) string {
	if u.Opaque == "" {
		return u.EscapedPath()
	}
	return strings.TrimPrefix(u.Opaque, "//"+u.Host)
}

// why is the reason for giving up, if weir did.
func (r *run) why() error {
	if g, ok := r.err.(*retry.GaveUpError); ok {
		return g.Why
	}
	return nil
}

// A sender is one request on its way.
type sender struct {
	t      *Transport
	req    *http.Request
	run    run
	replay *replay
	resp   *http.Response // of the last attempt; nil if it brought none
	errand *errand        // an attempt that goes on without its caller
}

// result is what the caller gets: no answer if it has left, as it could not read one.
func (s *sender) result() (*http.Response, error) {
	if s.resp == nil {
		return nil, s.run.err
	}
	if s.req.Context().Err() == nil {
		return s.resp, nil
	}
	discard(s.resp)
	if s.run.err == nil { // the call came to an end just as its caller left
		return nil, context.Cause(s.req.Context())
	}
	return nil, s.run.err
}

// send makes one attempt and reports whether the call is over.
func (s *sender) send() (over bool) {
	req, err := s.request()
	if err != nil {
		s.run.refusal = err // before anything is taken for it, or the last answer given away
	} else if err = s.run.admit(); err == nil {
		discard(s.resp)
		s.resp, err = s.attempt(req)
	} else if req.Body != nil {
		_ = req.Body.Close()
	}
	return !s.run.again(err)
}

// attempt sends the request once, and hears how it ended.
func (s *sender) attempt(req *http.Request) (resp *http.Response, err error) {
	r := &s.run
	defer s.handOver()
	defer r.report(nil)
	ctx, cancel := context.WithCancelCause(r.ctx)
	s.replay.attempt(ctx, cancel)
	timer := s.times(cancel)
	berth := s.newBerth()
	resp, err = s.roundTrip(Once(ctx), cancel, req)
	s.landing(berth)
	if err == nil {
		r.live.policy.Timeouts.watch(resp, cancel)
		r.outcome = s.judge(resp, timer)
	} else {
		err = s.failed(ctx, err)
	}
	if !s.replay.repeatable() {
		r.obstacle = ErrBodyTooLarge
	}
	if timer.Stop(); resp == nil {
		cancel(context.Canceled)
		return nil, err
	}
	if m, ok := resp.Body.(Meter); ok && r.outcome.Class == outcome.OK {
		resp.Body = r.meter(m)
	}
	resp.Body = releasing(resp.Body, cancel)
	return resp, nil
}

// failed classifies an attempt without an answer, and says why there is none.
func (s *sender) failed(ctx context.Context, err error) error {
	r := &s.run
	if cause := context.Cause(ctx); cause == ErrAttemptTimeout || cause == ErrCallTimeout || cause == ErrHeaderTimeout {
		err = cause
	}
	r.classify(err)
	own := s.replay.failure(context.Cause(ctx))
	if own == nil && s.replay.broken() {
		own = fmt.Errorf("%w: %w", ErrRequestBody, cmp.Or(s.replay.full(), err))
	}
	if own != nil { // the caller's own body failed: that says nothing of the upstream
		r.permit.broken = true
		r.outcome = outcome.Outcome{Class: outcome.Canceled, Code: brokenBody}
		return own
	}
	return err
}

// request is the request of the next attempt, without its context.
func (s *sender) request() (*http.Request, error) {
	if s.replay == nil {
		return s.req, nil
	}
	body, err := s.replay.next()
	if err != nil {
		return nil, err
	}
	req := new(http.Request)
	*req = *s.req
	req.Body, req.GetBody = body, nil // retries are made here, and nowhere below
	return req, nil
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
			timer.Reset(s.run.deadline - s.run.u.clock.Now())
		}
		r.Body = peek(resp)
	}
	o := s.run.live.policy.Classify.HTTP(r)
	judged := o
	if s.t.Judge != nil {
		judged = s.t.Judge(resp, o)
	}
	s.run.permit.heard = judged.Code == o.Code // and it is not that the rest did not come
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

// StoryFor answers the Value method of a context that keeps a story itself,
// instead of by WithStory: it is s if that is what the key asks for.
func StoryFor(key any, s *Story) (*Story, bool) {
	if key == (storyKey{}) {
		return s, true
	}
	return nil, false
}
