// Package grpcx puts gRPC under policies: interceptors for clients, whose calls wait for
// their turn and are repeated where that is worth it and safe, and for servers, whose
// refusals clients understand.
//
//	conn, err := grpc.NewClient(address, grpc.WithUnaryInterceptor(grpcx.UnaryClient(upstream, grpcx.Options{})), ...)
//	server := grpc.NewServer(grpc.UnaryInterceptor(grpcx.UnaryServer(nil, grpcx.Options{})), ...)
//
// A call that was rate limited ends in RESOURCE_EXHAUSTED with RetryInfo, one that met an
// open circuit or would have had to wait while weir ends in UNAVAILABLE, and the trailer grpc-retry-pushback-ms says when to come
// back, or not to. Nothing is repeated once the headers of an answer have come.
package grpcx

import (
	"context"
	"maps"
	"strconv"

	"google.golang.org/grpc/metadata"

	"github.com/seed1158cd35/weir"
)

// Options say what a call is to its policy.
type Options struct {
	// Call says what a method costs and whose it is; nil means one request. Operation is
	// the method ("/package.Service/Method") unless it is set; the policy must say
	// Undeclared for it to keep its name.
	Call func(ctx context.Context, method string, request any) weir.Call

	// Safe says which methods may be repeated although they may have been done; nil means
	// none.
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

// numbered is the context of an attempt, which tells the server how many there were.
func numbered(ctx context.Context, before int) context.Context {
	if before == 0 {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, attempts, strconv.Itoa(before))
}
