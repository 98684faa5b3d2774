package grpcx

import (
	"context"
	"sync"

	"google.golang.org/grpc"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/grpcx/grpcclass"
	"github.com/seed1158cd35/weir/outcome"
)

// UnaryServer returns an interceptor that converts weir's refusals for clients. The handler may return refusals of calls that it
// makes. If u is not nil, the method itself is under the policy of u, and may also be refused.
func UnaryServer(u *weir.Upstream, o Options) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		reply, err := admitted(ctx, u, &o, info.FullMethod, request, func(*weir.Permit) (any, error) { return handle(ctx, request) })
		trailer, err := told(err)
		if trailer != nil {
			_ = grpc.SetTrailer(ctx, trailer)
		}
		return reply, err
	}
}

// StreamServer is UnaryServer for streams. Each stream is admitted once.
func StreamServer(u *weir.Upstream, o Options) grpc.StreamServerInterceptor {
	return func(server any, s grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		_, err := admitted(s.Context(), u, &o, info.FullMethod, nil, func(p *weir.Permit) (any, error) {
			return nil, handle(server, &answering{ServerStream: s, permit: p})
		})
		trailer, err := told(err)
		if trailer != nil {
			s.SetTrailer(trailer)
		}
		return err
	}
}

// answering is a stream that is no longer in flight once its response has begun.
type answering struct {
	grpc.ServerStream
	permit *weir.Permit // nil without a policy
	once   sync.Once
}

func (s *answering) SendMsg(m any) error {
	err := s.ServerStream.SendMsg(m)
	if s.permit != nil && err == nil {
		s.once.Do(s.permit.Answered)
	}
	return err
}

// admitted handles a call with a permit, if there is a policy.
func admitted(ctx context.Context, u *weir.Upstream, o *Options, method string, request any, handle func(*weir.Permit) (any, error)) (reply any, err error) {
	if u == nil {
		return handle(nil)
	}
	p, err := u.Acquire(ctx, o.call(ctx, method, request))
	if err != nil {
		return nil, err
	}
	ended := outcome.Outcome{Class: outcome.Failed, Code: "panic"}
	defer func() { p.Report(ended) }()
	reply, err = handle(p)
	ended = grpcclass.Error(ctx, err, nil)
	return reply, err
}
