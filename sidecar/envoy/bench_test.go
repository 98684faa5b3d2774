package envoy

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed1158cd35/weir/fleet"
)

func benched(b *testing.B, store fleet.Store) *Server {
	s, err := New(Config{Timeout: time.Minute}, store, Options{})
	if err != nil {
		b.Fatal(err)
	}
	s.Set(must(Parse("r", []byte(`domain: d
descriptors:
- {key: a, rate_limit: &l {unit: hour, requests_per_unit: 4294967295}}
- {key: b, rate_limit: *l}
- {key: c, rate_limit: *l}
`))))
	return s
}

// Measures a complete decision without the connection, on Memory.
func BenchmarkDecide(b *testing.B) {
	for _, descriptors := range [][]string{{"a=1"}, {"a=1", "b=1", "c=1"}} {
		b.Run(fmt.Sprint("descriptors=", len(descriptors)), func(b *testing.B) {
			s, req := benched(b, fleet.NewMemory(nil)), request("d", descriptors...)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.ShouldRateLimit(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Measures a decision over a loopback connection, with client and server on the same cores. The baseline is a service
// of the same server library that gives the same response without a decision.
func BenchmarkGRPC(b *testing.B) {
	s := benched(b, fleet.NewMemory(nil))
	said, err := s.ShouldRateLimit(b.Context(), request("d", "a=1"))
	if err != nil {
		b.Fatal(err)
	}
	bare := grpc.NewServer()
	rls.RegisterRateLimitServiceServer(bare, &undecided{said: said})
	clients := map[string]rls.RateLimitServiceClient{
		"weir": dialed(b, s.Serve, s.grpc.Stop), "floor": dialed(b, bare.Serve, bare.Stop),
	}
	for _, callers := range []int{1, 64} {
		for _, of := range []string{"weir", "floor"} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, of), func(b *testing.B) { hammer(b, clients[of], callers) })
		}
	}
}

// An undecided service gives the same response to every request.
type undecided struct {
	rls.UnimplementedRateLimitServiceServer
	said *rls.RateLimitResponse
}

func (f *undecided) ShouldRateLimit(context.Context, *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	return f.said, nil
}

func dialed(b *testing.B, serve func(net.Listener) error, stop func()) rls.RateLimitServiceClient {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		conn.Close()
		stop()
		<-done
	})
	return rls.NewRateLimitServiceClient(conn)
}

func hammer(b *testing.B, client rls.RateLimitServiceClient, callers int) {
	req := request("d", "a=1")
	began := spent()
	defer func() { b.ReportMetric(float64(spent()-began)/float64(b.N)/1e3, "cpu-us/op") }()
	one := func() bool {
		_, err := client.ShouldRateLimit(b.Context(), req)
		if err != nil {
			b.Error(err)
		}
		return err == nil
	}
	if callers == 1 {
		for b.Loop() && one() {
		}
		return
	}
	b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() && one() {
		}
	})
}
