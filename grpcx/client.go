package grpcx

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/grpcx/grpcclass"
	"github.com/seed1158cd35/weir/outcome"
)

// UnaryClient returns an interceptor that makes every call of a connection under the upstream's policy. Disable gRPC's own
// retries (grpc.WithDisableRetry), or attempts multiply. The error is the last attempt's, a *retry.GaveUpError that wraps it, or
// a *weir.Refusal.
func UnaryClient(u *weir.Upstream, o Options) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		r := u.Begin(ctx, o.call(ctx, method, request))
		defer r.End()
		for before := 0; r.Next(); before++ {
			var header, trailer metadata.MD
			err := invoke(numbered(r.Context(), before), method, request, reply, conn, append(options[:len(options):len(options)], grpc.Header(&header), grpc.Trailer(&trailer))...)
			r.Report(r.Classify(judged(ctx, err, header, trailer)), err)
		}
		return r.Err()
	}
}

type judgedError struct {
	error
	outcome outcome.Outcome
}

func (e *judgedError) Outcome() outcome.Outcome { return e.outcome }
func (e *judgedError) Unwrap() error            { return e.error }

// judged returns the error with its outcome. Once headers have arrived, the server has begun to respond, and the call must not be
// repeated.
func judged(ctx context.Context, err error, header, trailer metadata.MD) error {
	if err == nil {
		return nil
	}
	o := grpcclass.Error(ctx, err, trailer)
	if len(header) > 0 && o.Class != outcome.OK && o.Class != outcome.Canceled {
		o.Undone, o.Unsent = false, false
		o.Hint.Advice = outcome.NotAgain
	}
	return &judgedError{err, o}
}

// StreamClient returns an interceptor that admits every stream of a connection under the upstream's policy and reports its
// result. A stream is tried once. If it could not be opened, the caller may open it again.
func StreamClient(u *weir.Upstream, o Options) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
		p, err := u.Acquire(ctx, o.call(ctx, method, nil))
		if err != nil {
			return nil, err
		}
		s, err := open(ctx, desc, conn, method, options...)
		if err != nil {
			p.Report(grpcclass.Error(ctx, err, nil))
			return nil, err
		}
		t := &stream{ClientStream: s, ctx: ctx, permit: p, one: !desc.ServerStreams}
		t.mu.Lock()
		t.stop = context.AfterFunc(s.Context(), t.left)
		t.mu.Unlock()
		return t, nil
	}
}

// A stream reports its result to the policy, once.
type stream struct {
	grpc.ClientStream
	ctx   context.Context
	one   bool // the response is a single message
	stop  func() bool
	begun atomic.Bool

	mu     sync.Mutex
	permit *weir.Permit // nil once reported
	calls  int          // number of running methods that may return the result
	gone   bool         // the context ended during one of them
}

func (s *stream) RecvMsg(m any) error {
	s.enters()
	err := s.ClientStream.RecvMsg(m)
	if err == nil && !s.one {
		s.begins()
	}
	s.leaves(err, err != nil || s.one)
	return err
}

// SendMsg returns io.EOF for a stream that has ended. RecvMsg then returns the result.
func (s *stream) SendMsg(m any) error {
	s.enters()
	err := s.ClientStream.SendMsg(m)
	s.leaves(err, err != nil && !errors.Is(err, io.EOF))
	return err
}

func (s *stream) CloseSend() error {
	s.enters()
	err := s.ClientStream.CloseSend()
	s.leaves(err, err != nil)
	return err
}

func (s *stream) Header() (metadata.MD, error) {
	s.enters()
	md, err := s.ClientStream.Header()
	if err == nil {
		s.begins()
	}
	s.leaves(err, err != nil)
	return md, err
}

// enters counts a running method. gRPC ends the stream's context before the method that detects the end returns. That method
// reports the result.
func (s *stream) enters() {
	s.mu.Lock()
	s.calls++
	s.mu.Unlock()
}

// leaves reports the end of the stream if a method has returned it, or if the context has ended meanwhile.
func (s *stream) leaves(err error, ended bool) {
	if ended {
		s.end(err)
	}
	s.mu.Lock()
	s.calls--
	gone := s.gone && s.calls == 0
	s.mu.Unlock()
	if gone {
		s.end(context.Cause(s.Context()))
	}
}

// left ends a stream whose context has ended while no method runs.
func (s *stream) left() {
	s.mu.Lock()
	busy := s.calls > 0
	s.gone = true
	s.mu.Unlock()
	if !busy {
		s.end(context.Cause(s.Context()))
	}
}

// begins reports once that the response has begun: the stream is then no longer in flight.
func (s *stream) begins() {
	if s.begun.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.permit != nil {
		s.permit.Answered()
	}
}

func (s *stream) end(err error) {
	s.mu.Lock()
	p, stop := s.permit, s.stop
	s.permit = nil
	s.mu.Unlock()
	if p == nil {
		return
	}
	if stop != nil {
		stop()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	p.Report(grpcclass.Error(s.ctx, err, s.Trailer()))
}
