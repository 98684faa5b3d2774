package httpx

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// An errand is an attempt that may continue after its caller has left, so that its response is observed. The first response after
// a stall shows that the stall is over, and it belongs to an earlier attempt. The errand continues while no later attempt is
// answered, for at most inflight.Held. Its response is discarded.
//
// Calls that are not safe, and calls with a body, end when their caller leaves, because the body belongs to the caller.
type errand struct {
	slot  *weir.Slot
	judge func(*http.Response) outcome.Class

	claimed atomic.Bool  // by the response, or by the caller that leaves
	done    chan brought // the result, if it arrived before the caller left
	ended   context.Context
	end     context.CancelFunc
}

type brought struct {
	resp     *http.Response
	err      error
	panicked any
}

// roundTrip sends one attempt. With a bound of attempts in flight, a safe attempt can become an errand.
func (s *sender) roundTrip(a *attempt, req *http.Request) (*http.Response, error) {
	ctx, cancel := context.Context(&a.ctx), a.cancel
	if p := s.run.Policy(); p.Timeouts.Headers > 0 && p.Bounded() {
		var h *headerTimer
		ctx, h = awaitHeaders(ctx, p.Timeouts.Headers, func() { cancel(errHeaderTimeout) })
		defer h.stop()
	}
	if !s.safe || s.replay != nil || s.req.Context().Done() == nil || s.run.Slot() == nil {
		return s.t.roundTripper().RoundTrip(a.request(ctx, req))
	}
	e := s.newErrand(ctx)
	out := req.WithContext(e.ended)
	out.Header = req.Header.Clone() // the caller may modify its header after it has left
	go e.run(s.t.roundTripper(), out)
	select {
	case b := <-e.done:
		return e.brings(ctx, b)
	case <-ctx.Done():
	}
	if !e.claimed.CompareAndSwap(false, true) {
		return e.brings(ctx, <-e.done)
	}
	e.leaves()
	return nil, ctx.Err()
}

func (s *sender) newErrand(ctx context.Context) *errand {
	rules, method := &s.run.Policy().Classify, s.req.Method
	e := &errand{
		slot: s.run.Slot(), done: make(chan brought, 1),
		judge: func(resp *http.Response) outcome.Class {
			return rules.HTTP(classify.Response{Method: method, Status: resp.StatusCode, Reason: reason(resp), Header: resp.Header, Now: time.Now()}).Class
		},
	}
	e.ended, e.end = context.WithCancel(context.WithoutCancel(ctx))
	return e
}

func (e *errand) run(to http.RoundTripper, req *http.Request) {
	var b brought
	defer func() {
		b.panicked = recover()
		if e.claimed.CompareAndSwap(false, true) {
			e.done <- b
		} else {
			e.late(b)
		}
	}()
	b.resp, b.err = to.RoundTrip(req)
}

// brings returns the response to the caller, which can still leave while it reads the body.
func (e *errand) brings(ctx context.Context, b brought) (*http.Response, error) {
	if b.panicked != nil {
		e.end()
		panic(b.panicked)
	}
	if b.resp == nil {
		e.end()
		return nil, b.err
	}
	context.AfterFunc(ctx, e.end)
	return b.resp, nil
}

// leaves lets the attempt continue without its caller, if its result is useful.
func (e *errand) leaves() {
	if !e.slot.Leave(e.end) {
		e.end()
		return
	}
	timer := time.AfterFunc(inflight.Held, e.end)
	context.AfterFunc(e.ended, func() { timer.Stop() })
}

// late observes the result of an attempt whose caller has left.
func (e *errand) late(b brought) {
	class := outcome.Failed
	if b.resp != nil {
		class = e.judge(b.resp)
	}
	if b.panicked == nil {
		e.slot.Heard(e.ended, class)
	}
	e.end()
	if b.resp != nil {
		_ = b.resp.Body.Close()
	}
}
