package httpx

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

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
	timer := s.times(a) // from here on: what a launch takes is not the upstream's time
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
	started := false // the rest is reported when the body has ended
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
	o := s.run.Classify(err)
	if o.Code == classify.InvalidRequest && !errors.Is(err, ErrInvalidRequest) {
		err = fmt.Errorf("%w: %w", ErrInvalidRequest, err)
	}
	return o, err
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
	if judged.Code == o.Code || resp.Body == http.NoBody { // and it is not that the rest did not come
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
