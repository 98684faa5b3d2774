package grpcx_test

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/grpcx"
)

// A program's own interceptor reports a refusal to its clients like UnaryServer.
func ExampleStatus() {
	err := &weir.Refusal{Upstream: "models", Operation: "embed", Reason: weir.RateLimited, Limit: "embeddings", RetryAfter: 2 * time.Second}
	if s, ok := grpcx.Status(err); ok {
		fmt.Println(s.Code(), len(s.Details()))
	}
	// Output: ResourceExhausted 2
}
