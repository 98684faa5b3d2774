package grpcclass_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed1158cd35/weir/grpcx/grpcclass"
)

func ExampleStatus() {
	s, err := status.New(codes.ResourceExhausted, "too fast").
		WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(1500 * time.Millisecond)})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := grpcclass.Status(s, nil)
	fmt.Println(o.Class, o.Code, o.Hint.After)
	// Output: throttled RESOURCE_EXHAUSTED 1.5s
}

func ExampleError() {
	err := status.Error(codes.Unavailable, "shutting down")
	o := grpcclass.Error(context.Background(), err, metadata.Pairs("grpc-retry-pushback-ms", "250"))
	fmt.Println(o.Class, o.Code, o.Hint.After)
	// Output: failed UNAVAILABLE 250ms
}

func ExampleHeader() {
	o, ok := grpcclass.Header(http.Header{"Grpc-Status": {"8"}})
	fmt.Println(o.Class, ok)
	// Output: throttled true
}

func ExampleName() {
	fmt.Println(grpcclass.Name(codes.Canceled))
	// Output: CANCELLED
}
