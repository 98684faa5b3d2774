package gateway

import (
	"context"
	"errors"
	"io"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// Reasons why an answer ends early.
var (
	errFirstContent error = silence("no content arrived in time")
	errIdle         error = silence("the stream stalled")
	errTotal        error = silence("the response took too long")
	errCut                = errors.New("the upstream closed the stream early")
)

// notAnswer is the outcome of a response that contains no answer.
var notAnswer = outcome.Outcome{Class: outcome.Failed, Code: "not an answer"}

// A silence is a timeout that weir sets itself.
type silence string

func (s silence) Error() string { return string(s) }
func (s silence) Timeout() bool { return true }

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

// empty reports whether a JSON body has none of the members of a model's answer.
func (m *meter) empty() bool { return m.x.route.Generates && m.reader.Hollow() }

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

// callerLeft reports whether the answer ended because the caller disconnected.
func callerLeft(err error) bool {
	_, own := err.(silence)
	return !own && errors.Is(err, context.Canceled)
}

// cut ends a stream early. If the caller has received a part, the stream ends with an error in the family's format, and
// then the connection is closed. It never ends as if it were complete.
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

// reason describes the error without addresses.
func (m *meter) reason(err error) string {
	if own, ok := err.(silence); ok {
		return string(own)
	}
	if errors.Is(err, weir.ErrAttemptTimeout) {
		return "it took too long"
	}
	return "the connection was lost"
}
