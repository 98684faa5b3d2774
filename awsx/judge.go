package awsx

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
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
func (p *passage) judged(err error) error {
	if err == nil {
		return nil
	}
	o := p.outcomeOf(err)
	err = p.explained(err)
	if o.Retryable() && p.once() {
		o.Hint.Advice = outcome.NotAgain
		err = &onceError{err}
	}
	return &judgedError{err, o}
}

func (p *passage) outcomeOf(err error) outcome.Outcome {
	if _, ok := errors.AsType[*smithy.OperationError](err); ok && p.ctx.Err() == nil {
		return ours("NotSent") // another operation's, which this one needed for its credentials
	}
	// The SDK makes up an answer without a status for what was not answered.
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.Response != nil && answer.HTTPStatusCode() != 0 {
		return p.answered(err, answer)
	}
	if _, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return classify.Error(p.ctx, err)
	}
	return ours("NotSent")
}

// ours is the outcome of what never reached the service.
func ours(code string) outcome.Outcome {
	return outcome.Outcome{Class: outcome.Rejected, Code: code, Unsent: true, Undone: true}
}

func (p *passage) answered(err error, answer *smithyhttp.ResponseError) outcome.Outcome {
	switch status := answer.HTTPStatusCode(); {
	case status < 300:
		return p.unread(err)
	case status < 400: // S3: the bucket is in another region
		return outcome.Outcome{Class: outcome.Rejected, Code: codeOf(err), Undone: true}
	}
	r := classify.Response{Method: http.MethodPost, Status: answer.HTTPStatusCode(), Header: answer.Response.Header, Now: time.Now()}
	_, r.Reason, _ = strings.Cut(answer.Response.Status, " ")
	if code := codeOf(err); code != "" && !toHead(answer.Response) {
		r.Header = r.Header.Clone()
		if r.Header == nil {
			r.Header = http.Header{}
		}
		r.Header.Set("X-Amzn-Errortype", code) // where the core looks for it
	}
	o := classify.Rules{}.HTTP(r)
	if o.Class == outcome.Rejected {
		o.Undone = true // what was refused had no effect, so asking again does not do it twice
	}
	return p.exact(err, o)
}

// toHead reports whether an answer has no body because of what it answers. The code is
// then made up by the SDK from the status: that of S3 "503 Slow Down" is the one of an
// outage.
func toHead(r *smithyhttp.Response) bool {
	return r.Response.Request != nil && r.Response.Request.Method == http.MethodHead
}

// unread is the outcome of a good answer that did not come to its end, or that is none:
// the work may have been done.
func (p *passage) unread(err error) outcome.Outcome {
	if class, ok := classify.AWSCode(codeOf(err)); ok {
		return outcome.Outcome{Class: class, Code: codeOf(err)}
	}
	o := classify.Error(p.ctx, err)
	if o.Class == outcome.Unknown {
		o.Class, o.Code = outcome.Failed, "CutAnswer"
	}
	o.Undone, o.Unsent = false, false
	return o
}

// exact knows what neither a code nor a status tells by itself.
func (p *passage) exact(err error, o outcome.Outcome) outcome.Outcome {
	switch {
	case o.Code == "LimitExceededException" && p.attempts > 1:
		// A throttle of some services and the end of a hard quota of others: asked once
		// more, and then believed.
		o.Hint.Advice = outcome.NotAgain
	case o.Code == "TransactionCanceledException" && tooBusy(err):
		o.Class = outcome.Throttled
	case o.Class == outcome.Rejected && clockWasWrong(err):
		// The SDK has set its clock by the answer's and signs the next attempt by it. That
		// is no fault of the service.
		o.Hint.Advice = outcome.Again
	}
	return o
}

// tooBusy reports whether DynamoDB canceled a transaction only because a table was asked
// too much: its message lists a reason for each item.
func tooBusy(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	m := api.ErrorMessage()
	busy := strings.Contains(m, "ThrottlingError") || strings.Contains(m, "ProvisionedThroughputExceeded")
	return busy && !strings.Contains(m, "ConditionalCheckFailed") && !strings.Contains(m, "ValidationError") && !strings.Contains(m, "ItemCollectionSizeLimitExceeded")
}

// codeOf is the service's word for an error; "" if it gave none.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// onceError says why there was no other attempt.
type onceError struct{ error }

func (e *onceError) Error() string {
	return e.error.Error() + " (not repeated: " + ErrNotSeekable.Error() + ")"
}
func (e *onceError) Unwrap() []error { return []error{e.error, ErrNotSeekable} }

// plain takes our own wrapping off what the program gets.
func plain(err error) error {
	if e, ok := err.(*judgedError); ok {
		return e.error
	}
	return err
}

// unseekable says of a call that gave up because its body cannot be read again that this is why.
func unseekable(err error) error {
	if g, ok := err.(*retry.GaveUpError); ok {
		if e, ok := g.Last.(*onceError); ok {
			g.Last, g.Why = e.error, ErrNotSeekable
		}
	}
	return err
}
