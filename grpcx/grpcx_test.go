package grpcx_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/grpcx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// healthy is a service whose responses the tests determine.
type healthy struct {
	grpc_health_v1.UnimplementedHealthServer
	check func(ctx context.Context, n int64) error
	n     atomic.Int64
}

func (h *healthy) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	if err := h.check(ctx, h.n.Add(1)); err != nil {
		return nil, err
	}
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, nil
}

func (h *healthy) Watch(_ *grpc_health_v1.HealthCheckRequest, s grpc_health_v1.Health_WatchServer) error {
	n := h.n.Add(1)
	if err := s.Send(&grpc_health_v1.HealthCheckResponse{}); err != nil {
		return err
	}
	return h.check(s.Context(), n)
}

func serve(t *testing.T, h *healthy, options ...grpc.ServerOption) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(options...)
	grpc_health_v1.RegisterHealthServer(s, h)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); <-done })
	return l.Addr().String()
}

func dial(t *testing.T, address string, options ...grpc.DialOption) grpc_health_v1.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return grpc_health_v1.NewHealthClient(conn)
}

func upstream(t *testing.T, p weir.Policy, e weir.Events) *weir.Upstream {
	t.Helper()
	p.Undeclared = true
	p.Retry = retry.Config{Base: time.Millisecond, Cap: time.Millisecond}
	u, err := weir.New("up", p, weir.Options{Events: e})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func anySafe(string) bool { return true }

// The meaning of each response decides whether the call is repeated.
func TestAnswersAreRepeatedWhereThatIsWorthIt(t *testing.T) {
	info := func(c codes.Code) error {
		s, _ := status.New(c, "m").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(2 * time.Millisecond)})
		return s.Err()
	}
	for _, c := range []struct {
		name     string
		safe     bool
		check    func(ctx context.Context, n int64) error
		attempts int64
		code     codes.Code
	}{
		{"unavailable", true, func(context.Context, int64) error { return status.Error(codes.Unavailable, "m") }, 3, codes.Unavailable},
		{"unavailable, and it may have been done", false, func(context.Context, int64) error { return status.Error(codes.Unavailable, "m") }, 1, codes.Unavailable},
		{"throttled, which does nothing", false, func(_ context.Context, n int64) error {
			if n < 3 {
				return info(codes.ResourceExhausted)
			}
			return nil
		}, 3, codes.OK},
		{"rejected", true, func(context.Context, int64) error { return status.Error(codes.InvalidArgument, "m") }, 1, codes.InvalidArgument},
		{"pushed back for ever", true, func(ctx context.Context, _ int64) error {
			_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "-1"))
			return status.Error(codes.Unavailable, "m")
		}, 1, codes.Unavailable},
		{"pushed back", true, func(ctx context.Context, n int64) error {
			_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "3"))
			if n < 2 {
				return status.Error(codes.Unavailable, "m")
			}
			return nil
		}, 2, codes.OK},
		{"headers have come", true, func(ctx context.Context, _ int64) error {
			_ = grpc.SendHeader(ctx, metadata.Pairs("k", "v"))
			return status.Error(codes.Unavailable, "m")
		}, 1, codes.Unavailable},
	} {
		var previous []string
		h := &healthy{check: func(ctx context.Context, n int64) error {
			md, _ := metadata.FromIncomingContext(ctx)
			previous = append(previous, strings.Join(md.Get("grpc-previous-rpc-attempts"), ","))
			return c.check(ctx, n)
		}}
		safe := func(string) bool { return c.safe }
		client := dial(t, serve(t, h), grpc.WithUnaryInterceptor(grpcx.UnaryClient(upstream(t, weir.Policy{}, weir.Events{}), grpcx.Options{Safe: safe})))
		_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if h.n.Load() != c.attempts || status.Code(unwrapped(err)) != c.code {
			t.Errorf("%s: %d attempts, want %d: %v", c.name, h.n.Load(), c.attempts, err)
		}
		if want := []string{"", "1", "2"}[:c.attempts]; strings.Join(previous, ";") != strings.Join(want, ";") {
			t.Errorf("%s: the server heard of %q before", c.name, previous)
		}
	}
}

func unwrapped(err error) error {
	if g, ok := errors.AsType[*retry.GaveUpError](err); ok {
		return g.Last
	}
	return err
}

// A limit applies to a server's method, and its client, with any mechanism, learns the delay before a retry.
func TestRefusalsTellWhenToComeBack(t *testing.T) {
	limited := weir.Policy{MaxWait: -1, Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Minute, Burst: 1}}}}
	h := &healthy{check: func(context.Context, int64) error { return nil }}
	u := upstream(t, limited, weir.Events{})
	client := dial(t, serve(t, h, grpc.UnaryInterceptor(grpcx.UnaryServer(u, grpcx.Options{})), grpc.StreamInterceptor(grpcx.StreamServer(u, grpcx.Options{}))))
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	var trailer metadata.MD
	_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Trailer(&trailer))
	s := status.Convert(err)
	var after time.Duration
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			after = info.RetryDelay.AsDuration()
		}
	}
	if s.Code() != codes.ResourceExhausted || after < 50*time.Second || after > time.Minute+time.Minute/10 || len(trailer.Get("grpc-retry-pushback-ms")) != 1 || h.n.Load() != 1 {
		t.Errorf("%v, after %v, %v", s, after, trailer)
	}
	stream, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a stream: %v", err)
	}
}

// A handler whose own calls meet a limit or an open breaker passes the refusal on.
func TestAHandlersRefusalsAreItsCallers(t *testing.T) {
	for _, c := range []struct {
		err  error
		code codes.Code
		push time.Duration // plus up to a tenth, so that callers do not return at the same time; negative for no retry
	}{
		{&weir.Refusal{Upstream: "s3", Reason: weir.RateLimited, RetryAfter: 1500 * time.Microsecond}, codes.ResourceExhausted, 2 * time.Millisecond},
		{&weir.Refusal{Upstream: "s3", Reason: weir.CircuitOpen, RetryAfter: time.Second}, codes.Unavailable, time.Second},
		{&weir.Refusal{Upstream: "s3", Reason: weir.ShuttingDown, RetryAfter: time.Second}, codes.Unavailable, time.Second},
		{&retry.GaveUpError{Upstream: "s3", Last: errors.New("http://secret.example.com: EOF"), Outcome: outcome.Outcome{Class: outcome.Failed}}, codes.Unavailable, -time.Millisecond},
		{status.Error(codes.NotFound, "m"), codes.NotFound, 0},
	} {
		h := &healthy{check: func(context.Context, int64) error { return c.err }}
		client := dial(t, serve(t, h, grpc.UnaryInterceptor(grpcx.UnaryServer(nil, grpcx.Options{}))))
		var trailer metadata.MD
		_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{}, grpc.Trailer(&trailer))
		pushed := time.Duration(0)
		if said := trailer.Get("grpc-retry-pushback-ms"); len(said) > 0 {
			ms, _ := strconv.Atoi(strings.Join(said, ""))
			pushed = time.Duration(ms) * time.Millisecond
		}
		if status.Code(err) != c.code || pushed < c.push || pushed > max(c.push, c.push+c.push/10) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v: %v, %v", c.err, err, trailer)
		}
	}
}

// Streams count while they last, and with their result.
func TestStreams(t *testing.T) {
	ended := make(chan outcome.Outcome, 10)
	u := upstream(t, weir.Policy{}, weir.Events{Ended: func(e weir.Ended) { ended <- e.Outcome }})
	h := &healthy{check: func(_ context.Context, n int64) error {
		if n == 1 {
			return nil
		}
		return status.Error(codes.Unavailable, "m")
	}}
	client := dial(t, serve(t, h), grpc.WithStreamInterceptor(grpcx.StreamClient(u, grpcx.Options{Safe: anySafe})))
	for i, want := range []outcome.Class{outcome.OK, outcome.Failed} {
		s, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); i == 0 && err != io.EOF || i == 1 && status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
		if o := <-ended; o.Class != want {
			t.Errorf("stream %d ended as %v, want %v", i, o, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	block := make(chan struct{})
	defer close(block)
	h.check = func(ctx context.Context, _ int64) error { <-ctx.Done(); return ctx.Err() }
	if _, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	cancel() // stop reading before the end
	if o := <-ended; o.Class != outcome.Canceled {
		t.Errorf("a stream that its caller left: %v", o)
	}
}

// A stream is in flight until its response begins, at the client and at the server. A call without a free slot is refused.
func TestStreamsAreInFlightUntilTheyBegin(t *testing.T) {
	here, there := weir.Policy{MaxWait: -1}, weir.Policy{MaxWait: -1}
	here.Concurrency.Limit, there.Concurrency.Limit = 1, 1
	client, server := upstream(t, here, weir.Events{}), upstream(t, there, weir.Events{})
	begun := make(chan struct{}, 3) // the server has sent the first message
	h := &healthy{check: func(ctx context.Context, _ int64) error { begun <- struct{}{}; <-ctx.Done(); return nil }}
	at := serve(t, h, grpc.StreamInterceptor(grpcx.StreamServer(server, grpcx.Options{})))
	c := dial(t, at, grpc.WithStreamInterceptor(grpcx.StreamClient(client, grpcx.Options{Safe: anySafe})))
	inFlight := func(u *weir.Upstream) int { return u.Look(0).Flights[0].InFlight }
	for range 3 {
		s, err := c.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Recv(); err != nil {
			t.Fatal(err)
		}
		<-begun
		if n, m := inFlight(client), inFlight(server); n != 0 || m != 0 {
			t.Errorf("%d and %d in flight while a stream goes on", n, m)
		}
	}
	p, err := client.Acquire(t.Context(), weir.Call{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{}); err == nil {
		t.Error("one more than the bound was let in")
	} else if r, ok := errors.AsType[*weir.Refusal](err); !ok || r.Reason != weir.ConcurrencyLimited {
		t.Error(err)
	}
	p.Report(outcome.Outcome{Class: outcome.OK})
}
