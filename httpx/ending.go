package httpx

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// A Meter is the body of an answer that knows how it ended and what was used. The attempt is
// reported with its Outcome.
type Meter interface {
	io.ReadCloser

	// Outcome returns how the answer ended. It is called once, after Close.
	Outcome() outcome.Outcome
}

// cutBody is the code of an answer whose body broke off in a way that has no other code.
const cutBody = "cut"

// An ending is the body of an answer. It reports the attempt when the body has ended: only then is the outcome known.
type ending struct {
	io.ReadCloser
	resp     *http.Response
	run      *weir.Run
	caller   context.Context // ends when the caller has left
	head     outcome.Outcome // what status and header say
	meter    Meter           // nil if the body is none
	errors   *classify.Stream
	left     int64 // bytes that are still to come; below 0 if that is not known
	reported atomic.Bool
}

// hasBody reports whether there is more of an answer to come than its head.
func hasBody(resp *http.Response) bool {
	return resp.Body != nil && resp.Body != http.NoBody && resp.StatusCode != http.StatusSwitchingProtocols
}

// start reports the head of an answer, and puts the ending in the place of its body.
func (e *ending) start(s *sender, resp *http.Response, o outcome.Outcome) {
	e.ReadCloser, e.resp, e.run, e.caller, e.head, e.left = resp.Body, resp, s.run, s.req.Context(), o, resp.ContentLength
	if m, ok := resp.Body.(Meter); o.Class == outcome.OK && ok {
		e.meter = m
	} else if o.Class == outcome.OK {
		e.errors = classify.NewStream(resp.Header)
	}
	resp.Body = e
	s.run.ReportStart(o)
}

// Read is io.Reader's.
func (e *ending) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	if n > 0 {
		if e.errors != nil {
			e.errors.Feed(p[:n])
		}
		e.run.ReportProgress()
		e.left -= int64(n)
	}
	if e.meter == nil && (err != nil || n > 0 && e.left == 0 && len(e.resp.Trailer) == 0) {
		e.report(err)
	}
	return n, err
}

// Close is io.Closer's.
func (e *ending) Close() error {
	err := e.ReadCloser.Close()
	e.report(nil)
	return err
}

// report reports the attempt, once. A panic of the Meter reports it as canceled.
func (e *ending) report(err error) {
	if e.reported.Swap(true) {
		return
	}
	o := outcome.Outcome{Class: outcome.Canceled}
	defer func() { e.run.ReportEnd(o) }()
	o = e.outcome(err)
}

// outcome is that of the attempt, whose body has ended with err; nil means that nobody reads on. A caller that
// closes a body before its end has read what it wanted, unless its context has ended.
func (e *ending) outcome(err error) outcome.Outcome {
	if e.meter != nil {
		return e.meter.Outcome()
	}
	if e.errors != nil {
		if err == io.EOF {
			e.errors.End()
		}
		if o, ok := e.errors.Failed(); ok {
			return o
		}
	}
	switch {
	case err == io.EOF:
		return e.trailed()
	case e.caller.Err() != nil && (err != nil || e.left != 0):
		return outcome.Outcome{Class: outcome.Canceled, Code: "canceled"}
	case err != nil:
		return e.broken(err)
	}
	return e.head
}

// trailed is the outcome of an answer that came whole, by its trailers.
func (e *ending) trailed() outcome.Outcome {
	if status := e.resp.Trailer["Grpc-Status"]; len(status) > 0 && e.head.Class == outcome.OK {
		if o, ok := classify.GRPCStatus(status[0]); ok {
			return o
		}
	}
	return e.head
}

// broken is the outcome of an answer whose body broke off.
func (e *ending) broken(err error) outcome.Outcome {
	o := e.run.Classify(err)
	if o.Class != outcome.Failed && o.Class != outcome.Throttled {
		o = outcome.Outcome{Class: outcome.Failed, Code: cutBody}
	}
	o.Undone, o.Unsent, o.Usage = false, false, e.head.Usage
	return o
}
