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

// judgedError is an error of the SDK with its outcome.
type judgedError struct {
	error
	outcome outcome.Outcome
}

func (e *judgedError) Outcome() outcome.Outcome { return e.outcome }
func (e *judgedError) Unwrap() error            { return e.error }

// judged determines the outcome of an attempt's error: from the service's code, from the status and header of the response, or
// from the way in which sending failed. A failure before anything was sent implies nothing about the service.
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
		return ours("NotSent") // from another operation, which this one needed for its credentials
	}
	// Without a response, the SDK invents one without a status.
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.Response != nil && answer.HTTPStatusCode() != 0 {
		return p.answered(err, answer)
	}
	if _, ok := errors.AsType[*smithyhttp.RequestSendError](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return classify.Error(p.ctx, err)
	}
	return ours("NotSent")
}

// ours returns the outcome of an attempt that never reached the service.
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
		r.Header.Set("X-Amzn-Errortype", code) // where package classify looks for it
	}
	o := classify.Rules{}.HTTP(r)
	if o.Class == outcome.Rejected {
		o.Undone = true // a refused request had no effect, so repeating it is safe
	}
	return p.exact(err, o)
}

// toHead reports whether a response has no body because the request was a HEAD. The SDK then derives the code from the status, so
// that S3's "503 Slow Down" looks like an outage.
func toHead(r *smithyhttp.Response) bool {
	return r.Response.Request != nil && r.Response.Request.Method == http.MethodHead
}

// unread returns the outcome of a successful response that is incomplete or invalid: the operation may have been done.
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

// exact handles errors whose meaning neither the code nor the status determines.
func (p *passage) exact(err error, o outcome.Outcome) outcome.Outcome {
	switch {
	case o.Code == "LimitExceededException" && p.attempts > 1:
		// Some services use it for a throttle, and some for a hard quota. It is repeated once, and then taken for a quota.
		o.Hint.Advice = outcome.NotAgain
	case o.Code == "TransactionCanceledException" && tooBusy(err):
		o.Class = outcome.Throttled
	case o.Class == outcome.Rejected && clockWasWrong(err):
		// The SDK has set its clock by the response, and signs the next attempt with it. The service is not at fault.
		o.Hint.Advice = outcome.Again
	}
	return o
}

// tooBusy reports whether DynamoDB canceled a transaction only because of throttling: its message has a reason for each item.
func tooBusy(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	m := api.ErrorMessage()
	busy := strings.Contains(m, "ThrottlingError") || strings.Contains(m, "ProvisionedThroughputExceeded")
	return busy && !strings.Contains(m, "ConditionalCheckFailed") && !strings.Contains(m, "ValidationError") && !strings.Contains(m, "ItemCollectionSizeLimitExceeded")
}

// codeOf returns the service's error code, "" if there is none.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// onceError adds why there was no further attempt.
type onceError struct{ error }

func (e *onceError) Error() string {
	return e.error.Error() + " (not repeated: " + ErrNotSeekable.Error() + ")"
}
func (e *onceError) Unwrap() []error { return []error{e.error, ErrNotSeekable} }

// plain removes the package's own wrapper from an error before the program gets it.
func plain(err error) error {
	if e, ok := err.(*judgedError); ok {
		return e.error
	}
	return err
}

// unseekable sets the reason of a call that gave up because its body cannot be read again.
func unseekable(err error) error {
	if g, ok := err.(*retry.GaveUpError); ok {
		if e, ok := g.Last.(*onceError); ok {
			g.Last, g.Why = e.error, ErrNotSeekable
		}
	}
	return err
}
