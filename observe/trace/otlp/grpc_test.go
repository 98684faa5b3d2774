package otlp

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed1158cd35/weir/internal/test/otlptest"
	"github.com/seed1158cd35/weir/observe/trace"
)

// receiveGRPC runs a receiver, which gets the requests that intercept passes.
func receiveGRPC(t *testing.T, intercept grpc.UnaryServerInterceptor) (*otlptest.Receiver, trace.Exporter) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := otlptest.New()
	s := grpc.NewServer(grpc.UnaryInterceptor(intercept))
	collector.RegisterTraceServiceServer(s, r)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	e, err := NewGRPC(GRPC{Target: l.Addr().String(), Header: map[string]string{"Authorization": "t"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.(io.Closer).Close() })
	return r, e
}

func TestTheCollectorTakesSpansByGRPC(t *testing.T) {
	var token []string
	r, e := receiveGRPC(t, func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		token = md.Get("authorization")
		return next(ctx, q)
	})
	if err := e.Export(t.Context(), []trace.Span{whole, whole}); err != nil {
		t.Fatal(err)
	}
	if got := r.Spans(); len(got) != 2 || got[0].Name != "GET" || len(got[0].Attributes) != 2 {
		t.Errorf("got %v, want two whole spans", got)
	}
	if len(token) != 1 || token[0] != "t" {
		t.Errorf("the receiver heard the token %q, want t", token)
	}
}

func TestWhichStatusesAreWorthAnotherAttempt(t *testing.T) {
	for _, c := range []struct {
		code  codes.Code
		said  bool
		again bool
	}{
		{codes.Unavailable, false, true}, {codes.Unavailable, true, true}, {codes.Aborted, false, true}, {codes.ResourceExhausted, false, false},
		{codes.ResourceExhausted, true, true}, {codes.InvalidArgument, false, false}, {codes.Unauthenticated, false, false}, {codes.Internal, false, false},
	} {
		_, e := receiveGRPC(t, func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
			s := status.New(c.code, "no")
			if c.said {
				s, _ = s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
			}
			return nil, s.Err()
		})
		err := e.Export(t.Context(), []trace.Span{whole})
		later, again := errors.AsType[*trace.LaterError](err)
		if err == nil || again != c.again {
			t.Errorf("%v: got %v, again %v; want an error, again %v", c.code, err, again, c.again)
		}
		if again && (later.After == 7*time.Second) != c.said {
			t.Errorf("%v: again after %v, said %v", c.code, later.After, c.said)
		}
	}
}

func TestAReceiverMayTakeAPartByGRPC(t *testing.T) {
	_, e := receiveGRPC(t, func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
		return &collector.ExportTraceServiceResponse{PartialSuccess: &collector.ExportTracePartialSuccess{RejectedSpans: 2, ErrorMessage: "old"}}, nil
	})
	err := e.Export(t.Context(), []trace.Span{whole, whole})
	if p, ok := errors.AsType[*trace.PartialError](err); !ok || p.Spans != 2 {
		t.Errorf("got %v, want that 2 spans were not taken", err)
	}
}
