package awsx

import (
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// add inserts the guard into the middleware of an operation, around signing and sending. It always replaces the SDK's retry loop,
// because attempts would multiply. It also replaces the guard of a client that has one: a call is charged once.
func (a *attached) add(stack *middleware.Stack) error {
	if _, ok := stack.Finalize.Get(a.ID()); ok {
		_, err := stack.Finalize.Swap(a.ID(), a)
		return err
	}
	loop, ok := stack.Finalize.Get(loopID)
	switch {
	case ok:
		if _, err := stack.Finalize.Swap(loopID, a.loopOf(loop)); err != nil {
			return err
		}
	case len(stack.Deserialize.List()) == 0:
		return nil // presigning a URL does not send a request
	default:
		// The program has removed the loop. Add a loop that makes one attempt.
		if err := stack.Finalize.Add(a.loopOf(nil), middleware.Before); err != nil {
			return err
		}
	}
	return a.surround(stack)
}

func (a *attached) surround(stack *middleware.Stack) error {
	if err := stack.Initialize.Add(inputs{}, middleware.Before); err != nil {
		return err
	}
	if err := stack.Finalize.Insert(a, loopID, middleware.Before); err != nil {
		return err
	}
	if err := stack.Finalize.Insert(numbering{}, loopID, middleware.After); err != nil {
		return err
	}
	return stack.Deserialize.Add(closing{}, middleware.After)
}

const loopID = "Retry" // of the SDK's retry loop

// A single is a retry loop that makes one attempt. It keeps the measurements and the clock skew of the client's own loop.
type single struct {
	*retry.Attempt
	of *atomic.Int64 // the client's clock skew, which identifies the client
}

// loopOf returns the loop that replaces a client's own. The latest is cached: in most configurations only one client is busy.
func (a *attached) loopOf(own middleware.FinalizeMiddleware) middleware.FinalizeMiddleware {
	was, ok := own.(*retry.Attempt)
	if !ok {
		return bare
	}
	if s := a.loop.Load(); s != nil && s.of == was.ClientSkew && s.LogAttempts == was.LogAttempts && s.DisableClockSkewCorrection == was.DisableClockSkewCorrection {
		return s.Attempt
	}
	s := &single{of: was.ClientSkew, Attempt: retry.NewAttemptMiddleware(aws.NopRetryer{}, smithyhttp.RequestCloner, func(o *retry.Attempt) {
		o.LogAttempts, o.OperationMeter = was.LogAttempts, was.OperationMeter
		o.ClientSkew, o.DisableClockSkewCorrection = was.ClientSkew, was.DisableClockSkewCorrection
	})}
	a.loop.Store(s)
	return s.Attempt
}

var bare = retry.NewAttemptMiddleware(aws.NopRetryer{}, smithyhttp.RequestCloner)
