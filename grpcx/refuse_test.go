package grpcx_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/grpcx"
	"github.com/seed1158cd35/weir/internal/test/refusals"
)

// trailing is a served call that records its trailer.
type trailing struct{ trailer metadata.MD }

func (*trailing) Method() string                    { return "/m" }
func (*trailing) SetHeader(metadata.MD) error       { return nil }
func (*trailing) SendHeader(metadata.MD) error      { return nil }
func (t *trailing) SetTrailer(md metadata.MD) error { t.trailer = md; return nil }

// For any refusal, the status can be sent, and it and the trailer have the same information as HTTP.
func TestRefusalsAsStatus(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	serve := grpcx.UnaryServer(nil, grpcx.Options{})
	for range 2000 {
		refusal, call := refusals.Random(r), &trailing{}
		_, err := serve(grpc.NewContextWithServerTransportStream(t.Context(), call), nil, &grpc.UnaryServerInfo{}, func(context.Context, any) (any, error) { return nil, refusal })
		s, _ := status.FromError(err)
		code := codes.ResourceExhausted
		if refusal.Reason.Unavailable() {
			code = codes.Unavailable
		}
		var wait time.Duration
		var reason string
		for _, d := range s.Details() { // none if they cannot be encoded
			switch d := d.(type) {
			case *errdetails.RetryInfo:
				wait = d.RetryDelay.AsDuration()
			case *errdetails.ErrorInfo:
				reason = d.Reason
			}
		}
		least := max(refusal.RetryAfter, time.Millisecond)
		if refusal.Endless() {
			least = time.Minute
		}
		push := "-1"
		if wait <= 24*time.Hour && !refusal.Endless() {
			push = strconv.FormatInt(int64((wait+time.Millisecond-1)/time.Millisecond), 10)
		}
		if s.Code() != code || reason != string(refusal.Reason) || wait < least || wait > least+least/10 || call.trailer.Get("grpc-retry-pushback-ms")[0] != push {
			t.Fatalf("seed %d: %v is %v after %v, %v", seed, refusal, s, wait, call.trailer)
		}
	}
}
