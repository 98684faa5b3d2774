package grpcx_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/grpcx"
)

// token is a source of call credentials.
type token struct {
	err  error
	with map[string]string
}

func (c token) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return c.with, c.err
}
func (token) RequireTransportSecurity() bool { return false }

var _ credentials.PerRPCCredentials = token{}

func TestInvalidCallIsNotTheUpstreamsFault(t *testing.T) {
	with := func(pairs ...string) func(context.Context) context.Context {
		return func(ctx context.Context) context.Context { return metadata.AppendToOutgoingContext(ctx, pairs...) }
	}
	for name, c := range map[string]struct {
		service string
		context func(context.Context) context.Context
		option  grpc.CallOption
	}{
		"text that is not UTF-8":      {service: "a\xff"},
		"message above the bound":     {service: strings.Repeat("x", 100), option: grpc.MaxCallSendMsgSize(10)},
		"name of metadata":            {context: with("a b", "x")},
		"value of metadata":           {context: with("a", "x\x01")},
		"empty name of metadata":      {context: with("", "x")},
		"metadata above the bound":    {context: with("a", strings.Repeat("x", 1<<20))},
		"compressor":                  {option: grpc.UseCompressor("none such")},
		"codec":                       {option: grpc.CallContentSubtype("none such")},
		"no token":                    {option: grpc.PerRPCCredentials(token{err: errors.New("no token")})},
		"token with an illegal code":  {option: grpc.PerRPCCredentials(token{err: status.Error(codes.DataLoss, "x")})},
		"token that is not printable": {option: grpc.PerRPCCredentials(token{with: map[string]string{"a": "\x01"}})},
	} {
		t.Run(name, func(t *testing.T) {
			h := &healthy{check: func(context.Context, int64) error { return nil }}
			address := serve(t, h, grpc.MaxHeaderListSize(8<<10))
			u := upstream(t, weir.Policy{Breaker: breaker.Config{Consecutive: 1}}, weir.Events{})
			o := grpcx.Options{Safe: anySafe}
			client := dial(t, address, grpc.WithUnaryInterceptor(grpcx.UnaryClient(u, o)), grpc.WithStreamInterceptor(grpcx.StreamClient(u, o)))
			call := func(context func(context.Context) context.Context, service string, options ...grpc.CallOption) error {
				ctx := t.Context()
				if context != nil {
					ctx = context(ctx)
				}
				_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: service}, options...)
				return err
			}
			if err := call(nil, ""); err != nil {
				t.Fatal(err)
			}
			var options []grpc.CallOption
			if c.option != nil {
				options = append(options, c.option)
			}
			if err := call(c.context, c.service, options...); err == nil {
				t.Error("no error")
			}
			ctx := t.Context()
			if c.context != nil {
				ctx = c.context(ctx)
			}
			s, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: c.service}, options...)
			if err == nil {
				_, err = s.Recv()
			}
			if err == nil {
				t.Error("no error of a stream")
			}
			if err := call(nil, ""); err != nil {
				t.Errorf("another caller gets %v", err)
			}
			if n := h.n.Load(); n != 2 {
				t.Errorf("the server got %d calls, want 2", n)
			}
		})
	}
}

// The same text counts if the server sends it: its answer could not be encoded.
func TestServersErrorWithTextOfTheClientCounts(t *testing.T) {
	h := &healthy{check: func(context.Context, int64) error {
		return status.Error(codes.Internal, "grpc: error while marshaling: x")
	}}
	u := upstream(t, weir.Policy{Breaker: breaker.Config{Consecutive: 1}}, weir.Events{})
	client := dial(t, serve(t, h), grpc.WithUnaryInterceptor(grpcx.UnaryClient(u, grpcx.Options{Safe: anySafe})))
	_, _ = client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if got := u.Breaker("").Look(u.Now()).Phase; got != breaker.Open {
		t.Errorf("the breaker is %v, want open", got)
	}
}
