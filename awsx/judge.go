package awsx

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed1158cd35/weir/classify"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// judgedError is an error of the SDK with what it means.
type judgedError struct {
	error
	outcome outcome.Outcome
}

func (e *judgedError) Outcome() outcome.Outcome { return e.outcome }
func (e *judgedError) Unwrap() error            { return e.error }

// judged finds out what an error of an attempt means: by its code if the service gave
// one, by status and header of the answer, or by how sending failed. What failed before
// anything was sent says nothing about the service.
func judged(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	// The SDK makes up an answer without a status for what was not answered.
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.Response != nil && answer.HTTPStatusCode() != 0 {
		return &judgedError{err, answered(err, answer)}
	}
	if _, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok {
		return err // the core knows what networks do
	}
	return &judgedError{err, ours("NotSent")}
}

// ours is the outcome of what never reached the service.
func ours(code string) outcome.Outcome {
	return outcome.Outcome{Class: outcome.Rejected, Code: code, Unsent: true, Undone: true}
}

func answered(err error, answer *smithyhttp.ResponseError) outcome.Outcome {
	r := classify.Response{Method: http.MethodPost, Status: answer.HTTPStatusCode(), Header: answer.Response.Header, Now: time.Now()}
	if r.Status < http.StatusBadRequest {
		r.Status = http.StatusInternalServerError // it looked good, and broke off or had an error inside
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() != "" {
		r.Header = r.Header.Clone()
		if r.Header == nil {
			r.Header = http.Header{}
		}
		r.Header.Set("X-Amzn-Errortype", api.ErrorCode()) // where the core looks for it
	}
	if r.Status < http.StatusMultipleChoices {
		// It said yes, and the rest was cut off or cannot be read: it was done, perhaps.
		return outcome.Outcome{Class: outcome.Failed, Code: "CutAnswer"}
	}
	o := classify.Rules{}.HTTP(r)
	if o.Class == outcome.Rejected {
		o.Undone = true // what was refused had no effect, so asking again does not do it twice
	}
	return o
}

// plain takes our own wrapping off what the program gets.
func plain(err error) error {
	if e, ok := err.(*judgedError); ok {
		return e.error
	}
	if g, ok := err.(*retry.GaveUpError); ok {
		if e, ok := g.Last.(*judgedError); ok {
			g.Last = e.error
		}
	}
	return err
}
