package envoy

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed1158cd35/weir/fleet"
)

// A world is a server on a store, with a client over a real connection.
type world struct {
	*testing.T
	server *Server
	conn   *grpc.ClientConn
	client rls.RateLimitServiceClient
	store  fleet.Store
	clock  func() time.Time // of the store
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 1e8, time.UTC)

func frozen() time.Time { return noon }

func onMemory(t *testing.T, c Config, o Options) *world {
	if o.Clock == nil {
		o.Clock = frozen
	}
	return start(t, fleet.NewMemory(o.Clock), c, o)
}

func start(t *testing.T, store fleet.Store, c Config, o Options) *world {
	t.Helper()
	if c.Rules == "" {
		c.Rules = "testdata/rules"
	}
	if o.Events.Failed == nil {
		o.Events.Failed = func(domain string, err error) { t.Logf("%s: %v", domain, err) }
	}
	if c.Timeout == 0 {
		c.Timeout = 5 * time.Second
	}
	s, err := New(c, store, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, server: s, store: store, clock: o.Clock}
	w.dial(serve(t, s), insecure.NewCredentials())
	return w
}

// serve starts the server on a free port, and stops it with the test.
func serve(t *testing.T, s *Server) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}

func (w *world) dial(address string, creds credentials.TransportCredentials, more ...grpc.DialOption) {
	conn, err := grpc.NewClient(address, append(more, grpc.WithTransportCredentials(creds))...)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	w.conn, w.client = conn, rls.NewRateLimitServiceClient(conn)
}

func (w *world) ask(req *rls.RateLimitRequest) *rls.RateLimitResponse {
	w.Helper()
	resp, err := w.client.ShouldRateLimit(w.Context(), req)
	if err != nil {
		w.Fatalf("%.300v: %v", req.String(), err)
	}
	if len(resp.Statuses) != len(req.Descriptors) {
		w.Fatalf("%d statuses for %d descriptors", len(resp.Statuses), len(req.Descriptors))
	}
	return resp
}

var freshest atomic.Int64

// fresh returns a value that no other test has used, so that stores need not be emptied.
func fresh() string { return fmt.Sprintf("v%d-%d", time.Now().UnixNano(), freshest.Add(1)) }

// request returns a request with descriptors written "key=value,key=value", each followed by "*n" for its own addend
// or "-n" for returned hits.
func request(domain string, descriptors ...string) *rls.RateLimitRequest {
	req := &rls.RateLimitRequest{Domain: domain}
	for _, text := range descriptors {
		req.Descriptors = append(req.Descriptors, descriptor(text))
	}
	return req
}

func descriptor(text string) *common.RateLimitDescriptor {
	d := new(common.RateLimitDescriptor)
	if head, n, ok := strings.Cut(text, " "); ok {
		var hits uint64
		fmt.Sscanf(n[1:], "%d", &hits)
		d.HitsAddend, d.IsNegativeHits, text = wrapperspb.UInt64(hits), n[0] == '-', head
	}
	for _, entry := range strings.Split(text, ",") {
		k, v, _ := strings.Cut(entry, "=")
		d.Entries = append(d.Entries, &common.RateLimitDescriptor_Entry{Key: k, Value: v})
	}
	return d
}

// brief returns a short form of a response: "over: ok 10/20 minute, over 0/10 hour".
func brief(r *rls.RateLimitResponse) string {
	code := map[rls.RateLimitResponse_Code]string{okay: "ok", over: "over"}
	var all []string
	for _, s := range r.Statuses {
		text := fmt.Sprint(code[s.Code], " ", s.LimitRemaining)
		if l := s.CurrentLimit; l != nil {
			text += fmt.Sprint("/", l.RequestsPerUnit, " ", unitName(l.Unit))
		}
		all = append(all, text)
	}
	return code[r.OverallCode] + ": " + strings.Join(all, ", ")
}

func (w *world) want(want string, req *rls.RateLimitRequest) *rls.RateLimitResponse {
	w.Helper()
	resp := w.ask(req)
	if got := brief(resp); got != want {
		w.Fatalf("%.300s\n got %s\nwant %s", req.String(), got, want)
	}
	return resp
}
