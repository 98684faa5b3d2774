package grpcx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/grpcx"
	"github.com/seed1158cd35/weir/outcome"
)

// A script is a stream that receives a number of messages and then ends. Like gRPC, it ends its context before the method that
// detects the end returns.
type script struct {
	ctx      context.Context
	cancel   context.CancelFunc
	messages int
	end      error // result of RecvMsg
	send     error // result of SendMsg
	header   error
	stalls   bool // nothing more is received
}

func (s *script) ends(err error) error {
	if err != nil && !(s.send != nil && errors.Is(err, io.EOF)) {
		s.cancel()
		synctest.Wait() // goroutines that wait for the context have run
	}
	return err
}

func (s *script) Header() (metadata.MD, error) { return metadata.MD{}, s.ends(s.header) }
func (s *script) Trailer() metadata.MD         { return nil }
func (s *script) CloseSend() error             { return nil }
func (s *script) Context() context.Context     { return s.ctx }
func (s *script) SendMsg(any) error            { return s.ends(s.send) }

func (s *script) RecvMsg(any) error {
	if s.messages > 0 {
		s.messages--
		return nil
	}
	if s.stalls {
		<-s.ctx.Done()
		return status.FromContextError(s.ctx.Err()).Err()
	}
	return s.ends(s.end)
}

// Streams of all four kinds report their result once, at their end, also if their context ends first.
func TestStreamOfEveryKindReportsItsEnd(t *testing.T) {
	reset := status.Error(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")
	for _, kind := range []grpc.StreamDesc{{}, {ServerStreams: true}, {ClientStreams: true}, {ServerStreams: true, ClientStreams: true}} {
		for _, c := range []struct {
			name     string
			s        script
			leave    bool
			deadline time.Duration
			want     outcome.Class
		}{
			{name: "complete", s: script{messages: 1, end: io.EOF}, want: outcome.OK},
			{name: "error in the trailers", s: script{end: status.Error(codes.Unavailable, "down")}, want: outcome.Failed},
			{name: "throttle in the trailers", s: script{end: status.Error(codes.ResourceExhausted, "slow down")}, want: outcome.Throttled},
			{name: "rejection in the trailers", s: script{end: status.Error(codes.InvalidArgument, "no")}, want: outcome.Rejected},
			{name: "reset", s: script{end: reset}, want: outcome.Failed},
			{name: "error of SendMsg", s: script{send: status.Error(codes.Unavailable, "connection lost")}, want: outcome.Failed},
			{name: "ended while the caller sends", s: script{send: io.EOF, end: status.Error(codes.Unavailable, "down")}, want: outcome.Failed},
			{name: "error of Header", s: script{header: status.Error(codes.Unavailable, "down")}, want: outcome.Failed},
			{name: "caller leaves a stall", s: script{stalls: true}, leave: true, want: outcome.Canceled},
			{name: "deadline in a stall", s: script{stalls: true}, deadline: time.Second, want: outcome.Canceled},
		} {
			t.Run(fmt.Sprintf("client %v, server %v: %s", kind.ClientStreams, kind.ServerStreams, c.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var ended []outcome.Outcome
					u := upstream(t, weir.Policy{}, weir.Events{Ended: func(e weir.Ended) { ended = append(ended, e.Outcome) }})
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					if c.deadline > 0 {
						ctx, leave = context.WithTimeout(ctx, c.deadline)
						defer leave()
					}
					open := func(ctx context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
						s := c.s
						s.ctx, s.cancel = context.WithCancel(ctx)
						return &s, nil
					}
					s, err := grpcx.StreamClient(u, grpcx.Options{})(ctx, &kind, nil, "/a.B/C", open)
					if err != nil {
						t.Fatal(err)
					}
					if c.leave {
						time.AfterFunc(time.Second, leave)
					}
					_, err = s.Header()
					if err == nil {
						err = s.SendMsg(nil)
					}
					if err == nil || err == io.EOF {
						for err = s.RecvMsg(nil); err == nil && kind.ServerStreams; {
							if len(ended) > 0 {
								t.Errorf("reported as %v before its end", ended)
							}
							err = s.RecvMsg(nil)
						}
					}
					synctest.Wait()
					if len(ended) != 1 || ended[0].Class != c.want {
						t.Errorf("reported %v, want %v once", ended, c.want)
					}
				})
			})
		}
	}
}
