package envoy

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

var service = rls.RateLimitService_ServiceDesc.ServiceName

// listenFor creates the gRPC server with its services.
func (s *Server) listenFor() {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(s.config.MaxRequestBytes),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: s.config.MaxConnectionAge, MaxConnectionAgeGrace: s.config.Grace,
		}),
		// Envoy pings idle connections more often than grpc-go permits by default.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(s.admitCall),
		grpc.StreamInterceptor(s.admitStream),
	}
	if s.options.Streams > 0 {
		options = append(options, grpc.MaxConcurrentStreams(s.options.Streams))
	}
	if s.options.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(s.options.TLS)))
	}
	s.grpc = grpc.NewServer(options...)
	s.health = health.NewServer()
	s.install(nil)
	rls.RegisterRateLimitServiceServer(s.grpc, s)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	reflection.Register(s.grpc)
}

// Serve serves the listener until Shutdown, and then returns nil.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}

// Shutdown reports the server as not ready, lets requests in progress finish until ctx is done, and closes all
// connections.
func (s *Server) Shutdown(ctx context.Context) {
	s.health.Shutdown()
	end := context.AfterFunc(ctx, s.grpc.Stop)
	defer end()
	s.grpc.GracefulStop()
}

type callerKey struct{}

func callerOf(ctx context.Context) string {
	caller, _ := ctx.Value(callerKey{}).(string)
	return caller
}

// admit authenticates the caller with Auth.
func (s *Server) admit(ctx context.Context, method string) (context.Context, error) {
	if s.options.Auth == nil || strings.HasPrefix(method, "/"+healthpb.Health_ServiceDesc.ServiceName+"/") {
		return ctx, nil
	}
	headers, _ := metadata.FromIncomingContext(ctx)
	var conn *tls.ConnectionState
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			conn = &info.State
		}
	}
	caller, err := s.options.Auth(strings.Join(headers.Get("authorization"), ","), conn)
	if err != nil {
		return nil, refusal(err)
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}

// refusal returns the status for an error of Auth. It hides the text of the error, which may reveal too much.
func refusal(err error) error {
	if st, ok := status.FromError(err); ok {
		return st.Err()
	}
	return status.Error(codes.Unauthenticated, "the caller is not known: send authorization, or a client certificate")
}

func (s *Server) admitCall(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	ctx, err := s.admit(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (s *Server) admitStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if _, err := s.admit(stream.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, stream)
}
