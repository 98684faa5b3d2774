package envoy

import (
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

// The whole of a decision but for the connection, on Memory.
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

// A decision over a connection on loopback, client and server on the same cores.
func BenchmarkGRPC(b *testing.B) {
	client := dialed(b, benched(b, fleet.NewMemory(nil)))
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) { hammer(b, client, callers) })
	}
}

func dialed(b *testing.B, s *Server) rls.RateLimitServiceClient {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		conn.Close()
		s.grpc.Stop()
		<-done
	})
	return rls.NewRateLimitServiceClient(conn)
}

func hammer(b *testing.B, client rls.RateLimitServiceClient, callers int) {
	req := request("d", "a=1")
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
