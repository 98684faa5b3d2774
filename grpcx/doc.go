// Package grpcx puts gRPC under policies. Client interceptors make calls wait for their turn, and repeat them if that is useful
// and safe. Server interceptors return refusals in a form that clients understand.
//
//	conn, err := grpc.NewClient(address, grpc.WithUnaryInterceptor(grpcx.UnaryClient(upstream, grpcx.Options{})), ...)
//	server := grpc.NewServer(grpc.UnaryInterceptor(grpcx.UnaryServer(nil, grpcx.Options{})), ...)
//
// A call that a rate limit refused returns RESOURCE_EXHAUSTED with RetryInfo. A call refused by an open breaker, or because it
// would have to wait while weir shuts down, returns UNAVAILABLE. The trailer grpc-retry-pushback-ms has the delay before a retry,
// or forbids one. A call is not repeated once the headers of a response have arrived.
package grpcx

import (
	"context"
	"maps"
	"strconv"

	"google.golang.org/grpc/metadata"

	"github.com/seed1158cd35/weir"
)

// Options describe calls to the policy.
type Options struct {
	// Call returns the cost and the keys of a method; nil means one request. Operation is the method ("/package.Service/Method")
	// unless it is set. To keep that name, the policy must allow Undeclared operations.
	Call func(ctx context.Context, method string, request any) weir.Call

	// Safe reports which methods may be repeated although they may have been done; nil means none.
	Safe func(method string) bool
}

func (o *Options) call(ctx context.Context, method string, request any) weir.Call {
	var c weir.Call
	if o.Call != nil {
		c = o.Call(ctx, method, request)
		c.Keys = maps.Clone(c.Keys)
	}
	if c.Operation == "" {
		c.Operation = method
	}
	if o.Safe != nil {
		c.Safe = c.Safe || o.Safe(method)
	}
	return c
}

const (
	pushback = "grpc-retry-pushback-ms"
	attempts = "grpc-previous-rpc-attempts"
)

// numbered returns the context of an attempt, which sends the number of previous attempts to the server.
func numbered(ctx context.Context, before int) context.Context {
	if before == 0 {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, attempts, strconv.Itoa(before))
}
