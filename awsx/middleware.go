package awsx

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awswire"
)

// add puts the guard into the way of an operation: around signing and sending, in the
// place of the SDK's own retries. These are replaced whatever the client's options say,
// or attempts would multiply.
func (a *attached) add(stack *middleware.Stack) error {
	if err := stack.Initialize.Add(inputs{}, middleware.Before); err != nil {
		return err
	}
	if _, ok := stack.Finalize.Get("Retry"); ok {
		if _, err := stack.Finalize.Swap("Retry", once); err != nil {
			return err
		}
		if err := stack.Finalize.Insert(a, "Retry", middleware.Before); err != nil {
			return err
		}
	} else if err := stack.Finalize.Add(a, middleware.Before); err != nil {
		return err
	}
	if err := stack.Deserialize.Add(closing{}, middleware.After); err != nil {
		return err
	}
	return stack.Finalize.Insert(numbering{}, "Retry", middleware.After)
}

// once is the SDK's loop of attempts, which makes one.
var once = retry.NewAttemptMiddleware(aws.NopRetryer{}, smithyhttp.RequestCloner)

type inputKey struct{}

// inputs lets what is sent later look at what it was called with.
type inputs struct{}

func (inputs) ID() string { return "weir:Input" }

func (inputs) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	return next.HandleInitialize(middleware.WithStackValue(ctx, inputKey{}, in.Parameters), in)
}

func (*attached) ID() string { return "weir:Guard" }

// HandleFinalize makes a call under a policy.
func (a *attached) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	service := awswire.ServiceOf(awsmiddleware.GetServiceID(ctx))
	u, err := a.upstream(ctx, service)
	if err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, err
	}
	c := callOf(service, awsmiddleware.GetOperationName(ctx), middleware.GetStackValue(ctx, inputKey{}), u.scoped)
	p := &passage{ctx: ctx, in: in, next: next, bounded: u.bounded}
	_, err = weir.Do(ctx, u.Upstream, c, p.attempt)
	return p.out, p.metadata, plain(err)
}

// A passage is one call on its way.
type passage struct {
	ctx      context.Context
	in       middleware.FinalizeInput
	next     middleware.FinalizeHandler
	bounded  bool
	attempts int
	out      middleware.FinalizeOutput
	metadata middleware.Metadata
}

func (p *passage) attempt(ctx context.Context) (_ struct{}, err error) {
	if p.attempts++; p.attempts > 1 {
		if err = rewind(p.in.Request); err != nil {
			return struct{}{}, err
		}
	}
	l := begin(p.ctx, ctx, p.attempts, p.bounded)
	p.out, p.metadata, err = p.next.HandleFinalize(middleware.WithStackValue(l, attemptKey{}, l), p.in)
	l.end(err)
	if cause := context.Cause(ctx); err != nil && cause != nil && p.ctx.Err() == nil {
		return struct{}{}, fmt.Errorf("%w: %w", cause, err)
	}
	return struct{}{}, judged(err)
}

// ErrNotSeekable means that there is no other attempt because the body of the request
// cannot be read again.
var ErrNotSeekable = errors.New("the body cannot be read again: give the SDK an io.ReadSeeker")

func rewind(request any) error {
	r, ok := request.(*smithyhttp.Request)
	if !ok {
		return nil
	}
	if err := r.RewindStream(); err != nil {
		return &judgedError{error: fmt.Errorf("%w (%w)", ErrNotSeekable, err), outcome: ours("NotSeekable")}
	}
	return nil
}

type attemptKey struct{}

func lifeOf(ctx context.Context) *life {
	l, _ := middleware.GetStackValue(ctx, attemptKey{}).(*life)
	return l
}

// numbering tells the service which attempt it is, as the SDK does.
type numbering struct{}

func (numbering) ID() string { return "weir:Attempt" }

func (numbering) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	l := lifeOf(ctx)
	if r, ok := in.Request.(*smithyhttp.Request); ok && l != nil && l.number > 1 {
		r.Header.Set("Amz-Sdk-Request", "attempt="+strconv.Itoa(l.number))
	}
	return next.HandleFinalize(ctx, in)
}
