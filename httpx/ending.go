package httpx

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// A Meter is a response body that knows its result and the amount used. The attempt is reported with its Outcome.
type Meter interface {
	io.ReadCloser

	// Outcome returns the result of the response. It is called once, after Close.
	Outcome() outcome.Outcome
}

// cutBody is the code of a response whose body broke off without a more specific code.
const cutBody = classify.CutStream

// An ending is the body of a response. It reports the attempt at the end of the body, because the outcome is unknown before.
type ending struct {
	io.ReadCloser
	resp     *http.Response
	run      *weir.Run
	caller   context.Context // ends when the caller has left
	head     outcome.Outcome // the outcome by status and header
	meter    Meter           // nil if the body is not a Meter
	errors   *classify.Stream
	coded    *coded // nil if the body is not encoded
	left     int64  // remaining bytes; negative if unknown
	part     int64  // bytes of the part of a file that are still missing; 0 if the response is not a part
	reported atomic.Bool
	probe    *probing // nil unless a breaker waits for the attempt
}

// proofTime is how long the caller may leave the response of a probe unread before the probe counts as answered. As long as weir
// waits for the upstream, the probe is not over.
const proofTime = time.Second

// A probing ends the wait of a breaker for a response that its caller does not read.
type probing struct {
	*weir.Probe
	head    outcome.Outcome
	reading atomic.Bool
	timer   *time.Timer
}

func newProbing(p *weir.Probe, head outcome.Outcome) *probing {
	b := &probing{Probe: p, head: head}
	b.timer = time.AfterFunc(proofTime, func() {
		if !b.reading.Load() {
			b.Answered(b.head)
		}
	})
	return b
}

// reads notes whether weir waits for the upstream.
func (b *probing) reads(does bool) {
	if b != nil {
		b.reading.Store(does)
	}
}

func (b *probing) stop() {
	if b != nil {
		b.timer.Stop()
	}
}

// hasBody reports whether a body follows the response's header.
func hasBody(resp *http.Response) bool {
	return resp.Body != nil && (resp.Body != http.NoBody || partLength(resp) > 0) && resp.StatusCode != http.StatusSwitchingProtocols
}

// start reports the beginning of the response, and replaces its body by the ending.
func (e *ending) start(s *sender, resp *http.Response, o outcome.Outcome) {
	e.ReadCloser, e.resp, e.run, e.caller, e.head, e.left = resp.Body, resp, s.run, s.req.Context(), o, resp.ContentLength
	e.part = partLength(resp)
	if m, ok := resp.Body.(Meter); o.Class == outcome.OK && ok {
		e.meter = m
	} else if o.Class == outcome.OK {
		if e.errors = classify.NewStream(resp.Header); e.errors == nil {
			e.coded, e.errors = newCoded(resp)
		}
	}
	resp.Body = e
	if p := s.run.Probe(); p != nil {
		e.probe = newProbing(p, o)
	}
	s.run.ReportStart(o)
}

// Read implements io.Reader.
func (e *ending) Read(p []byte) (int, error) {
	e.probe.reads(true)
	n, err := e.ReadCloser.Read(p)
	e.probe.reads(false)
	if n > 0 {
		switch {
		case e.coded != nil:
			e.coded.write(p[:n])
		case e.errors != nil:
			e.errors.Feed(p[:n])
		}
		e.run.ReportProgress()
		e.left -= int64(n)
		e.part = max(0, e.part-int64(n))
	}
	if e.meter == nil && (err != nil || n > 0 && e.left == 0 && len(e.resp.Trailer) == 0) {
		e.report(err)
	}
	return n, err
}

// Close implements io.Closer.
func (e *ending) Close() error {
	err := e.ReadCloser.Close()
	e.report(nil)
	return err
}

// report reports the attempt once. If the Meter panics, it reports the attempt as canceled.
func (e *ending) report(err error) {
	if e.reported.Swap(true) {
		return
	}
	e.probe.stop()
	o := outcome.Outcome{Class: outcome.Canceled}
	defer func() { e.run.ReportEnd(o) }()
	o = e.outcome(err)
	if end, ok := e.caller.Value(endingKey{}).(*Ending); ok {
		*end = Ending{Outcome: o, Whole: o.Code != cutBody && e.whole(err)}
	}
}

// outcome returns the outcome of the attempt. err is the error that ended the body, nil if reading stopped. A caller that closes
// a body before its end has read what it needed, unless its context has ended.
func (e *ending) outcome(err error) outcome.Outcome {
	if e.meter != nil {
		return e.meter.Outcome()
	}
	whole := e.whole(err)
	broken := e.coded != nil && e.coded.end(whole)
	if e.errors != nil {
		if whole {
			e.errors.End()
		}
		if o, ok := e.errors.Failed(); ok {
			return o
		}
	}
	switch {
	case broken, whole && e.part > 0:
		return outcome.Outcome{Class: outcome.Failed, Code: cutBody, Usage: e.head.Usage}
	case err == io.EOF:
		return e.trailed()
	case e.caller.Err() != nil && (err != nil || e.left != 0):
		return outcome.Outcome{Class: outcome.Canceled, Code: "canceled"}
	case err != nil:
		return e.broken(err)
	}
	return e.head
}

// whole reports whether all of the body has arrived when it ended with err.
func (e *ending) whole(err error) bool { return err == io.EOF || err == nil && e.left == 0 }

// partLength returns the number of bytes that a response with a part of a file announces, or 0.
func partLength(resp *http.Response) int64 {
	if resp.Uncompressed || resp.Request != nil && resp.Request.Method == http.MethodHead {
		return 0
	}
	return classify.PartLength(resp.StatusCode, resp.Header)
}

// trailed returns the outcome of a complete response, from its trailers.
func (e *ending) trailed() outcome.Outcome {
	if status := e.resp.Trailer["Grpc-Status"]; len(status) > 0 && e.head.Class == outcome.OK {
		if o, ok := classify.GRPCStatus(status[0]); ok {
			return o
		}
	}
	for name, v := range e.resp.Trailer {
		if e.head.Class == outcome.OK && len(v) > 0 && reportsError(name, v[0]) {
			return outcome.Outcome{Class: outcome.Failed, Code: strings.ToLower(name), Usage: e.head.Usage}
		}
	}
	return e.head
}

// broken returns the outcome of a response whose body broke off.
func (e *ending) broken(err error) outcome.Outcome {
	o := e.run.Classify(err)
	if o.Class != outcome.Failed && o.Class != outcome.Throttled {
		o = outcome.Outcome{Class: outcome.Failed, Code: cutBody}
	}
	o.Undone, o.Unsent, o.Usage = false, false, e.head.Usage
	return o
}

// reportsError reports whether a trailer means that the response failed: X-Stream-Error, X-Error-Message, or a status from 400.
func reportsError(name, value string) bool {
	name = strings.ToLower(name)
	for part := range strings.SplitSeq(name, "-") {
		if part == "error" {
			switch strings.ToLower(value) {
			case "", "0", "false", "no", "none", "null", "ok":
				return false
			}
			return true
		}
	}
	return (name == "status" || strings.HasSuffix(name, "-status") || strings.HasSuffix(name, "-status-code")) && name != "grpc-status" &&
		len(value) >= 3 && (value[0] == '4' || value[0] == '5') && (len(value) == 3 || value[3] == ' ') && isDigits(value[:3])
}

func isDigits(s string) bool { return strings.Trim(s, "0123456789") == "" }
