// Command grpc runs a gRPC server with a limit, and a client that waits as long as the server's refusals specify:
//
//	go run ./examples/grpc
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/grpcx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

const check = "/grpc.health.v1.Health/Check"

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves the health service and calls it ten times, one after the other.
func run(ctx context.Context, out io.Writer) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server, err := newServer()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(listener) }()
	defer func() { server.Stop(); <-done }()

	conn, err := dial(listener.Addr().String())
	if err != nil {
		return err
	}
	defer conn.Close()
	client := grpc_health_v1.NewHealthClient(conn)
	for i := range 10 {
		if _, err := client.Check(ctx, new(grpc_health_v1.HealthCheckRequest)); err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
	}
	_, err = fmt.Fprintln(out, "10 calls answered")
	return err
}

// newServer admits five simultaneous calls and ten a second. MaxWait below 0 refuses other calls immediately. A refusal
// contains the time to retry.
func newServer() (*grpc.Server, error) {
	in, err := weir.New("health", weir.Policy{
		Undeclared: true, MaxWait: -1,
		Limits: []limit.Limit{{Name: "checks", Operations: []string{check}, Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 5}}},
	}, weir.Options{})
	if err != nil {
		return nil, err
	}
	s := grpc.NewServer(grpc.UnaryInterceptor(grpcx.UnaryServer(in, grpcx.Options{})), grpc.StreamInterceptor(grpcx.StreamServer(in, grpcx.Options{})))
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	return s, nil
}

// dial connects to the server. The client retries refused calls at the time in the refusal, within its budget. gRPC's retries
// are off, so that the two do not multiply.
func dial(address string) (*grpc.ClientConn, error) {
	out, err := weir.New("health", weir.Policy{Undeclared: true}, weir.Options{})
	if err != nil {
		return nil, err
	}
	return grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithUnaryInterceptor(grpcx.UnaryClient(out, grpcx.Options{})), grpc.WithStreamInterceptor(grpcx.StreamClient(out, grpcx.Options{})))
}
