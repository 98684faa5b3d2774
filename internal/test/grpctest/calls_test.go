package grpctest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

func echoes(_ context.Context, in *text) (*text, error) { return in, nil }

// both returns each message.
func both(s grpc.ServerStream) error {
	for {
		in := new(text)
		if err := s.RecvMsg(in); err == io.EOF {
			s.SetTrailer(metadata.Pairs("said", "all"))
			return nil
		} else if err != nil {
			return err
		}
		if err := s.SendMsg(in); err != nil {
			return err
		}
	}
}

// Calls of every kind pass, message by message, with their metadata.
func TestEveryKindOfCall(t *testing.T) {
	s := new(service)
	_, at := serve(t, s)
	everyKind(t, s, dial(t, before(t, at, "").Serve.Listen))
}

func everyKind(t *testing.T, s *service, conn *grpc.ClientConn) {
	t.Helper()
	s.unary, s.stream = echoes, both
	ctx := within(t)
	if got, err := ask(ctx, conn, "hello"); err != nil || got != "hello" {
		t.Fatalf("unary: %q, %v", got, err)
	}
	stream, err := open(ctx, conn, "Both")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 { // each response arrives before the next request
		if err := stream.SendMsg(&text{Value: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
		got := new(text)
		if err := stream.RecvMsg(got); err != nil || string(got.Value) != fmt.Sprint(i) {
			t.Fatalf("message %d: %q, %v", i, got.Value, err)
		}
	}
	_ = stream.CloseSend()
	if err := stream.RecvMsg(new(text)); err != io.EOF || strings.Join(stream.Trailer().Get("said"), "") != "all" {
		t.Errorf("the end of a stream: %v, %v", err, stream.Trailer())
	}

	s.stream = func(g grpc.ServerStream) error { // server stream, then an error with details
		if err := g.RecvMsg(new(text)); err != nil {
			return err
		}
		for range 3 {
			if err := g.SendMsg(new(text)); err != nil {
				return err
			}
		}
		full, _ := status.New(codes.FailedPrecondition, "50% – done").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)})
		return full.Err()
	}
	down, err := open(ctx, conn, "Down")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = down.SendMsg(new(text)), down.CloseSend()
	for range 3 {
		if err := down.RecvMsg(new(text)); err != nil {
			t.Fatal(err)
		}
	}
	if end := status.Convert(down.RecvMsg(new(text))); end.Code() != codes.FailedPrecondition || end.Message() != "50% – done" || len(end.Details()) != 1 {
		t.Errorf("a status with details: %v %v", end, end.Details())
	}

	s.stream = func(g grpc.ServerStream) error { // client stream
		n := 0
		for g.RecvMsg(new(text)) == nil {
			n++
		}
		return g.SendMsg(&text{Value: fmt.Append(nil, n)})
	}
	up, err := open(ctx, conn, "Up")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := up.SendMsg(new(text)); err != nil {
			t.Fatal(err)
		}
	}
	_ = up.CloseSend()
	sum := new(text)
	if err := up.RecvMsg(sum); err != nil || string(sum.Value) != "5" {
		t.Errorf("a stream of the caller's: %q, %v", sum.Value, err)
	}
}

// Health and reflection come from the upstream.
func TestHealthAndReflection(t *testing.T) {
	_, at := serve(t, &service{unary: echoes})
	conn, ctx := dial(t, before(t, at, "").Serve.Listen), within(t)
	health := grpc_health_v1.NewHealthClient(conn)
	if r, err := health.Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", r, err)
	}
	watch, err := health.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := watch.Recv(); err != nil || r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("watching health: %v, %v", r, err)
	}
	info, err := grpc_reflection_v1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_ = info.Send(&grpc_reflection_v1.ServerReflectionRequest{MessageRequest: &grpc_reflection_v1.ServerReflectionRequest_ListServices{}})
	if r, err := info.Recv(); err != nil || !strings.Contains(r.String(), "weir.test.Echo") {
		t.Errorf("reflection: %v, %v", r, err)
	}
}

// A call that the upstream refuses for its rate is retried at the specified time, invisibly to the caller.
func TestRefusedForItsRateAndRepeated(t *testing.T) {
	s := &service{}
	var before1 []string
	s.unary = func(ctx context.Context, in *text) (*text, error) {
		before1 = append(before1, came(ctx, "grpc-previous-rpc-attempts"))
		if s.calls.Load() < 3 {
			full, _ := status.New(codes.ResourceExhausted, "slow down").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(30 * time.Millisecond)})
			return nil, full.Err()
		}
		return in, nil
	}
	_, at := serve(t, s)
	conn := dial(t, before(t, at, "").Serve.Listen, grpc.WithDisableRetry())
	begin := time.Now()
	if got, err := ask(within(t), conn, "again"); err != nil || got != "again" || time.Since(begin) < 60*time.Millisecond {
		t.Errorf("%q, %v after %v", got, err, time.Since(begin))
	}
	if got := strings.Join(before1, ";"); got != ";1;2" {
		t.Errorf("the server heard of attempts %q", got)
	}
}

// Refusals by weir are statuses with RetryInfo, and with a pushback for libraries that do not support it.
func TestRefusalsAreStatuses(t *testing.T) {
	s := &service{unary: echoes}
	_, at := serve(t, s)
	conn := dial(t, before(t, at, "limits: {all: {rate: 1/min, burst: 1}}\nmax_wait: off").Serve.Listen)
	ctx := within(t)
	if _, err := ask(ctx, conn, "first"); err != nil {
		t.Fatal(err)
	}
	var trailer metadata.MD
	_, err := ask(ctx, conn, "second", grpc.Trailer(&trailer))
	end := status.Convert(err)
	var wait time.Duration
	var reason string
	for _, d := range end.Details() {
		switch d := d.(type) {
		case *errdetails.RetryInfo:
			wait = d.RetryDelay.AsDuration()
		case *errdetails.ErrorInfo:
			reason = d.Reason
		}
	}
	if end.Code() != codes.ResourceExhausted || reason != "rate_limited" || wait < 50*time.Second || wait > 70*time.Second || len(trailer.Get("grpc-retry-pushback-ms")) != 1 || s.calls.Load() != 1 {
		t.Errorf("%v, %s after %v, %v", end, reason, wait, trailer)
	}
}

// A trailers-only response arrives as such, each time.
func TestTrailersAlone(t *testing.T) {
	s := &service{unary: func(context.Context, *text) (*text, error) { return nil, status.Error(codes.NotFound, "none") }}
	_, at := serve(t, s)
	conn, ctx := dial(t, before(t, at, "").Serve.Listen), within(t)
	for range 500 {
		var header metadata.MD
		if _, err := ask(ctx, conn, "x", grpc.Header(&header)); status.Code(err) != codes.NotFound {
			t.Fatalf("%v, %v", err, header)
		}
	}
}

// After weir has given up, its status tells the client not to retry.
func TestWhatIsGivenUpIsNotRepeatedByTheClient(t *testing.T) {
	s := &service{unary: func(context.Context, *text) (*text, error) {
		return nil, detailed(codes.ResourceExhausted, time.Millisecond)
	}}
	_, at := serve(t, s)
	retries := `{"methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":5,"initialBackoff":"0.001s","maxBackoff":"0.001s","backoffMultiplier":1,"retryableStatusCodes":["RESOURCE_EXHAUSTED"]}}]}`
	conn := dial(t, before(t, at, "retry: {attempts: 2}").Serve.Listen, grpc.WithDefaultServiceConfig(retries))
	if _, err := ask(within(t), conn, "x"); status.Code(err) != codes.ResourceExhausted || s.calls.Load() != 2 {
		t.Errorf("%v after %d attempts, want 2", err, s.calls.Load())
	}
}
