package gateway

import (
	"context"
	"errors"
	"io"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// Why an answer ends before its time.
var (
	errFirstContent error = silence("no content arrived in time")
	errIdle         error = silence("the stream stalled")
	errTotal        error = silence("the response took too long")
	errCut                = errors.New("the upstream closed the stream early")
)

// notAnswer is the outcome of what a model would not say.
var notAnswer = outcome.Outcome{Class: outcome.Failed, Code: "not an answer"}

// silence is a timeout of weir's own.
type silence string

func (s silence) Error() string { return string(s) }
func (s silence) Timeout() bool { return true }

// finish judges an answer whose body has come to its end.
func (m *meter) finish() {
	r := m.reader
	m.err, m.end = io.EOF, outcome.Outcome{Class: outcome.OK}
	switch problem := r.Failed(); {
	case problem != nil:
		m.end = problem.Outcome
	case r.Streamed() && !r.Complete() && r.Finish() == "":
		m.cut(errCut)
	case m.empty(), !r.Streamed() && !r.Blind() && !r.Complete():
		m.end = notAnswer
	}
}

// empty reports whether a body that is JSON is no answer of a model: there is nothing in it
// that one has.
func (m *meter) empty() bool { return m.x.route.Generates && m.reader.Hollow() }

// fail judges one whose body has failed.
func (m *meter) fail(err error) {
	if cause := context.Cause(m.ctx); cause != nil {
		err = cause
	}
	if callerLeft(err) {
		m.err, m.end = err, outcome.Outcome{Class: outcome.Canceled}
		return
	}
	m.cut(err)
}

// callerLeft reports whether an answer ended because nobody wants it any more.
func callerLeft(err error) bool {
	_, own := err.(silence)
	return !own && errors.Is(err, context.Canceled)
}

// cut ends a stream before its time. A caller who has been given something is told so in
// the words of the family, and then the connection is closed: never a fake end.
func (m *meter) cut(err error) {
	m.err, m.end = err, classify.Rules{}.Error(context.Background(), err)
	if m.end.Class == outcome.OK || m.end.Class == outcome.Rejected || m.end.Class == outcome.Unknown || err == errCut {
		m.end = outcome.Outcome{Class: outcome.Failed, Code: "cut"}
	}
	m.end.Undone, m.end.Unsent = false, false
	if m.good || m.reader.Committed() {
		code := "upstream_cut"
		if _, own := err.(silence); own {
			code = "upstream_silent"
		}
		m.pass(m.reader.Cut(code, "the stream ended before the response was complete: "+m.reason(err)))
		m.keep = false
	}
}

// reason says why, without addresses.
func (m *meter) reason(err error) string {
	if own, ok := err.(silence); ok {
		return string(own)
	}
	if errors.Is(err, weir.ErrAttemptTimeout) {
		return "it took too long"
	}
	return "the connection was lost"
}
