package awsx

import (
	"context"
	"errors"
	"fmt"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed1158cd35/weir/awsx/wire"
)

type inputKey struct{}

// inputs makes the input of a call available to later middleware.
type inputs struct{}

func (inputs) ID() string { return "weir:Input" }

func (inputs) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	return next.HandleInitialize(context.WithValue(ctx, inputKey{}, in.Parameters), in)
}

func (*attached) ID() string { return "weir:Guard" }

// HandleFinalize makes a call under a policy.
func (a *attached) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	service := wire.ServiceOf(awsmiddleware.GetServiceID(ctx))
	u, err := a.upstream(ctx, service)
	if err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, err
	}
	c := u.callOf(awsmiddleware.GetOperationName(ctx), ctx.Value(inputKey{}))
	c.ID = a.g.idOf(ctx, in.Request)
	p := &passage{ctx: ctx, in: in, next: next, u: u}
	r := u.Begin(core(ctx), c)
	defer r.End()
	for r.Next() {
		err := p.attempt(r.Context())
		if err != nil || !p.answer.follow(r) {
			r.Report(r.Classify(err), plain(err))
		}
	}
	p.remember()
	return p.out, p.metadata, unseekable(r.Err())
}

func (g *Guard) idOf(ctx context.Context, request any) string {
	if g.o.ID != nil {
		if id := g.o.ID(ctx); id != "" {
			return id
		}
	}
	if r, ok := request.(*smithyhttp.Request); ok {
		return r.Header.Get(invocation)
	}
	return ""
}

// invocation is the header with the SDK's ID of the call.
const invocation = "Amz-Sdk-Invocation-Id"

// A passage is one call in progress.
type passage struct {
	ctx      context.Context
	in       middleware.FinalizeInput
	next     middleware.FinalizeHandler
	u        *upstream
	attempts int
	out      middleware.FinalizeOutput
	metadata middleware.Metadata
	before   []retry.AttemptResult // results of all attempts except the last
	answer   *answer               // body of the last attempt's response; nil if there is none
}

func (p *passage) attempt(ctx context.Context) (err error) {
	if p.attempts++; p.attempts > 1 {
		p.before = append(p.before, resultsOf(p.metadata)...)
		if err = p.rewind(); err != nil {
			return err
		}
	}
	l := begin(p.ctx, ctx, p.attempts, p.u)
	p.out, p.metadata, err = p.next.HandleFinalize(l, p.in)
	l.end(err)
	p.answer = l.answer
	if cause := context.Cause(ctx); err != nil && cause != nil && p.ctx.Err() == nil {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return p.judged(err)
}

// ErrNotSeekable means that there was no further attempt because the request body cannot be read again.
var ErrNotSeekable = errors.New("the body cannot be read again: give the SDK an io.ReadSeeker")

// once reports whether the body can be read only once.
func (p *passage) once() bool {
	r, ok := p.in.Request.(*smithyhttp.Request)
	return ok && r.GetStream() != nil && !r.IsStreamSeekable()
}

func (p *passage) rewind() error {
	r, ok := p.in.Request.(*smithyhttp.Request)
	if !ok {
		return nil
	}
	if err := r.RewindStream(); err != nil {
		return &judgedError{error: fmt.Errorf("%w (%w)", ErrNotSeekable, err), outcome: ours("NotSeekable")}
	}
	return nil
}
