package httpx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// A sender is one request in progress.
type sender struct {
	t      *Transport
	req    *http.Request
	safe   bool
	run    *weir.Run
	replay *replay        // nil without a body
	resp   *http.Response // of the last attempt; nil without a response
}

// result returns the caller's result: no response if the caller has left, because it could not read one.
func (s *sender) result() (*http.Response, error) {
	err := s.run.Err()
	if s.resp == nil {
		return nil, err
	}
	if s.req.Context().Err() == nil {
		return s.resp, nil
	}
	discard(s.resp)
	if err == nil { // the call ended just when its caller left
		err = context.Cause(s.req.Context())
	}
	return nil, err
}

func (s *sender) send() {
	r := s.run
	discard(s.resp)
	a := newAttempt(s.req.Context())
	s.replay.attempt(&a.ctx, a.cancel, r)
	req := s.request()
	var resp *http.Response
	err := valid(req)
	if err == nil {
		err = launch(&a.ctx, a.cancel, req)
	} else if req.Body != nil {
		_ = req.Body.Close()
	}
	timer := s.times(a) // starts here, because the time of a launch is not the upstream's
	if err == nil {
		resp, err = s.roundTrip(a, req)
	}
	s.replay.answered()
	var o outcome.Outcome
	if err == nil {
		watch(resp, r.Policy().Timeouts, a.cancel)
		o = s.judge(a, resp, timer)
	} else {
		o, err = s.failed(&a.ctx, err)
	}
	if !s.replay.repeatable() {
		r.NoMore(ErrBodyTooLarge)
	}
	s.t.stops(timer)
	started := false // otherwise reported at the end of the body
	if s.resp = resp; resp == nil {
		a.cancel(context.Canceled)
	} else {
		if started = hasBody(resp) && !o.Retryable(); started {
			a.ending.start(s, resp, o)
		}
		resp.Body = a.releasing(resp.Body)
	}
	if !started {
		r.Report(o, err)
	}
}

// failed classifies an attempt without a response, and returns the error.
func (s *sender) failed(ctx context.Context, err error) (outcome.Outcome, error) {
	cause := context.Cause(ctx)
	if cause == weir.ErrAttemptTimeout || cause == weir.ErrCallTimeout || cause == errHeaderTimeout ||
		cause == context.DeadlineExceeded && errors.Is(err, context.Canceled) { // over HTTP/2, net/http returns no cause
		err = cause
	}
	own := s.replay.failure(cause)
	if own == nil && s.replay.broken() {
		own = fmt.Errorf("%w: %w", ErrRequestBody, cmp.Or(s.replay.full(), err))
	}
	if own != nil { // the caller's own body failed, which implies nothing about the upstream
		s.run.Spoiled()
		return outcome.Outcome{Class: outcome.Canceled, Code: brokenBody}, own
	}
	o := s.run.Classify(err)
	if o.Code == classify.InvalidRequest && !errors.Is(err, ErrInvalidRequest) {
		err = fmt.Errorf("%w: %w", ErrInvalidRequest, err)
	}
	return o, err
}

// request returns the request of an attempt, without its context.
func (s *sender) request() *http.Request {
	guarded := s.replay == nil && !s.safe && (s.req.Method == http.MethodGet || s.req.Method == http.MethodHead || s.req.Method == http.MethodOptions)
	if s.replay == nil && !guarded {
		return s.req
	}
	req := new(http.Request)
	*req = *s.req
	if req.GetBody = nil; guarded { // only this package retries
		req.Body = unsafeBody{}
	} else {
		req.Body = s.replay.take()
	}
	return req
}

// An unsafeBody is an empty body of a request that must not be repeated. net/http repeats a GET or HEAD request without a body
// if its connection ends before the response.
type unsafeBody struct{}

func (unsafeBody) Read([]byte) (int, error) { return 0, io.EOF }
func (unsafeBody) Close() error             { return nil }

// judge classifies a response, and reads the body if that can matter. The body of such a success may be slow, because S3 sends
// 200 before it knows the result. It may take until the end of the call.
func (s *sender) judge(a *attempt, resp *http.Response, timer *expiry) outcome.Outcome {
	r := classify.Response{
		Method: s.req.Method, Status: resp.StatusCode, Reason: reason(resp),
		Header: resp.Header, Now: time.Now(),
	}
	s.look(a, &r, resp, timer)
	o := s.run.Policy().Classify.HTTP(r)
	judged := o
	if s.t.Judge != nil {
		judged = s.t.Judge(resp, o)
	}
	if judged.Code == o.Code || resp.Body == http.NoBody { // not an error because the rest did not arrive
		s.run.Answered()
	}
	return judged
}

// reason returns the text after the code in the status line.
func reason(resp *http.Response) string {
	if len(resp.Status) > 4 {
		return resp.Status[4:]
	}
	return ""
}
