package grpctest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

// patience bounds every wait of these tests.
const patience = 30 * time.Second

// A text is the only message type of these tests.
type text = wrapperspb.BytesValue

// A service responds as tests specify. A nil method returns UNIMPLEMENTED. It has a method of each kind, with bytes messages.
type service struct {
	unary  func(ctx context.Context, in *text) (*text, error)
	stream func(s grpc.ServerStream) error
	calls  atomic.Int64
}

func (s *service) desc() *grpc.ServiceDesc {
	unary := func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(text)
		if err := decode(in); err != nil {
			return nil, err
		}
		s.calls.Add(1)
		return s.unary(ctx, in)
	}
	stream := func(_ any, g grpc.ServerStream) error { s.calls.Add(1); return s.stream(g) }
	return &grpc.ServiceDesc{
		ServiceName: "weir.test.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Unary", Handler: unary}, {MethodName: "Safe", Handler: unary}},
		Streams: []grpc.StreamDesc{
			{StreamName: "Down", Handler: stream, ServerStreams: true},
			{StreamName: "Up", Handler: stream, ClientStreams: true},
			{StreamName: "Both", Handler: stream, ServerStreams: true, ClientStreams: true},
		},
	}
}

// serve serves it with health and reflection, without encryption.
func serve(t testing.TB, s *service, options ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveAt(t, s, l, options...), l.Addr().String()
}

func serveAt(t testing.TB, s *service, l net.Listener, options ...grpc.ServerOption) *grpc.Server {
	t.Helper()
	g := grpc.NewServer(options...)
	g.RegisterService(s.desc(), struct{}{})
	grpc_health_v1.RegisterHealthServer(g, health.NewServer())
	reflection.Register(g)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-done })
	return g
}

// before starts a weir for an upstream, with additional configuration.
func before(t testing.TB, address, more string) *served.Inside {
	t.Helper()
	return served.Begin(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  echo:\n    url: h2c://%s\n    grpc: true\n%s", address, indent(more)))
}

func indent(more string) string {
	lines := strings.Split(strings.TrimSpace(more), "\n")
	return "    " + strings.Join(lines, "\n    ") + "\n"
}

func dial(t testing.TB, address string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask makes a unary call.
func ask(ctx context.Context, conn *grpc.ClientConn, say string, options ...grpc.CallOption) (string, error) {
	out := new(text)
	err := conn.Invoke(ctx, "/weir.test.Echo/Unary", &text{Value: []byte(say)}, out, options...)
	return string(out.Value), err
}

// open starts a stream.
func open(ctx context.Context, conn *grpc.ClientConn, method string) (grpc.ClientStream, error) {
	return conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: method != "Up", ClientStreams: method != "Down"}, "/weir.test.Echo/"+method)
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// came returns metadata that a server received.
func came(ctx context.Context, name string) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.Join(md.Get(name), ",")
}
