package awsx

import (
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// add puts the guard into the way of an operation: around signing and sending, in the
// place of the SDK's own retries. These are replaced whatever the client's options say,
// or attempts would multiply. A client that is under a guard already comes under this
// one instead: a call is charged once.
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
		return nil // a URL is signed for somebody else: nothing is sent
	default:
		// The program has taken the loop out. It costs nothing to put one back that
		// makes one attempt.
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

const loopID = "Retry" // of the SDK's loop of attempts

// A single is a client's loop of attempts that makes one. It keeps what the client's
// loop had besides: its measurements, and what it has found out about the clock.
type single struct {
	*retry.Attempt
	of *atomic.Int64 // the client's clock: it tells clients apart
}

// loopOf is the loop for a client in place of its own. The one that was made last is
// kept: most configurations have one client that is busy.
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
