package grpctest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/seed1158cd35/weir/retry"
)

// A kind is the behavior of the server in a call, and the expected end.
type kind struct {
	name   string
	method string
	code   codes.Code
	share  int // per hundred
}

var kinds = []kind{
	{"ok", "Unary", codes.OK, 35},
	{"ok", "Safe", codes.OK, 10},
	{"ok", "Both", codes.OK, 19},
	{"status", "Unary", codes.FailedPrecondition, 10},
	{"status", "Down", codes.FailedPrecondition, 6},
	{"throttle", "Unary", codes.OK, 5}, // once, then retried
	{"flaky", "Safe", codes.OK, 3},     // fails once, then retried
	{"flaky", "Unary", codes.Unavailable, 4},
	{"never", "Safe", codes.Unavailable, 2}, // and must not be retried
	{"slow", "Unary", codes.DeadlineExceeded, 3},
	{"slow", "Down", codes.DeadlineExceeded, 3},
}

// detailed returns a status with RetryInfo.
func detailed(c codes.Code, d time.Duration) error {
	s, err := status.New(c, "50% – done").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
	if err != nil {
		panic(err)
	}
	return s.Err()
}

// does returns the result of a call of a kind after its messages. nil means OK.
func does(ctx context.Context, what string) error {
	first := came(ctx, "grpc-previous-rpc-attempts") == ""
	switch what, _, _ = strings.Cut(what, " "); {
	case what == "status":
		return detailed(codes.FailedPrecondition, time.Second)
	case what == "throttle" && first:
		return detailed(codes.ResourceExhausted, 5*time.Millisecond)
	case what == "flaky" && first:
		return status.Error(codes.Unavailable, "not now")
	case what == "never":
		_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", "-1"))
		return status.Error(codes.Unavailable, "never")
	case what == "slow":
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// A faulty service behaves as its calls request, and records their times.
type faulty struct {
	mu   sync.Mutex
	came []time.Time
}

func (f *faulty) service() *service {
	enter := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.came = append(f.came, time.Now())
	}
	return &service{
		unary: func(ctx context.Context, in *text) (*text, error) {
			enter()
			return in, does(ctx, string(in.Value))
		},
		stream: func(g grpc.ServerStream) error {
			enter()
			for n := 0; ; n++ { // returns each message; the last one decides
				in := new(text)
				if err := g.RecvMsg(in); err == io.EOF {
					return nil
				} else if err != nil {
					return err
				}
				if err := g.SendMsg(in); err != nil {
					return err
				}
				if err := does(g.Context(), string(in.Value)); err != nil {
					return err
				}
			}
		},
	}
}

// A restarted server is killed and restarted at the same address.
type restarted struct {
	t     *testing.T
	s     *service
	at    string
	mu    sync.Mutex
	g     *grpc.Server
	kills []([2]time.Time) // from the kill until the server is available
}

func (r *restarted) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	begin := time.Now()
	r.g.Stop()
	var l net.Listener
	for deadline := time.Now().Add(patience); ; {
		var err error
		if l, err = net.Listen("tcp", r.at); err == nil {
			break
		}
		if time.Now().After(deadline) {
			r.t.Error(err)
			return
		}
	}
	r.g = serveAt(r.t, r.s, l)
	r.kills = append(r.kills, [2]time.Time{begin, time.Now()})
}

// killed reports whether the server was killed or unavailable during a call.
func (r *restarted) killed(from, to time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.kills, func(k [2]time.Time) bool { return from.Before(k[1]) && k[0].Before(to) })
}

// call makes a call of a kind and returns its result. A wrong response is a separate error. The options are for unary calls.
func (k kind) call(ctx context.Context, conn *grpc.ClientConn, id int, options ...grpc.CallOption) error {
	if k.name == "slow" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 40*time.Millisecond)
		defer cancel()
	}
	say := &text{Value: fmt.Appendf(nil, "%s %d", k.name, id)}
	if k.method == "Unary" || k.method == "Safe" {
		out := new(text)
		err := conn.Invoke(ctx, "/weir.test.Echo/"+k.method, say, out, options...)
		if err == nil && string(out.Value) != string(say.Value) {
			return fmt.Errorf("the answer to another call: %q", out.Value)
		}
		return err
	}
	s, err := open(ctx, conn, k.method)
	if err != nil {
		return err
	}
	questions := 1
	if k.method != "Down" {
		questions = 3
	}
	for range questions {
		if err := s.SendMsg(say); err != nil && err != io.EOF {
			return err
		}
	}
	_ = s.CloseSend()
	answers := 0
	for {
		out := new(text)
		err := s.RecvMsg(out)
		switch {
		case err == io.EOF && answers != questions:
			return fmt.Errorf("%d answers of %d", answers, questions)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case string(out.Value) != string(say.Value):
			return fmt.Errorf("the answer to another call: %q", out.Value)
		}
		answers++
	}
}

// refused returns the reason of weir's refusal, or "".
func refused(err error) string {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.Domain == "weir" {
			return info.Reason
		}
	}
	return ""
}

// wait returns the wait in a refusal.
func wait(err error) time.Duration {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info.RetryDelay.AsDuration()
		}
	}
	return 0
}

// Of ten thousand calls some get errors, slow responses or none, and the server is killed five times. Each call ends as
// expected, and no more arrive than the limit allows. Budget and breaker are the defaults. 8% of the calls fail once, and the
// budget pays for 10%. Failures by the kills may use up the rest.
func TestTenThousandCallsWithFaults(t *testing.T) {
	const calls, callers, rate, burst, kills = 10_000, 64, 2000, 100, 5
	seed := rand.Uint64()
	f := new(faulty)
	s := f.service()
	g, at := serve(t, s)
	server := &restarted{t: t, s: s, at: at, g: g}
	w := before(t, at, fmt.Sprintf("limits: {all: {rate: %d/s, burst: %d}}\noperations: {safe: {path: /weir.test.Echo/Safe, safe: yes}}", rate, burst))
	begin := time.Now()
	var next, broken atomic.Int64
	var mu sync.Mutex
	no := make(map[string]int) // refusals by weir, by reason
	var killing, calling sync.WaitGroup
	for c := range callers {
		calling.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(c)))
			conn := dial(t, w.Serve.Listen, grpc.WithDisableRetry())
			for {
				id := int(next.Add(1))
				if id > calls {
					return
				}
				if id%(calls/kills) == calls/kills/2 {
					killing.Go(server.kill)
				}
				k := pick(r)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				for {
					from := time.Now()
					var said metadata.MD
					err := k.call(ctx, conn, id, grpc.Trailer(&said))
					if code := status.Code(err); code == k.code && refused(err) == "" {
						break
					}
					if why := refused(err); why != "" { // the call is retried at the specified time
						mu.Lock()
						no[why]++
						mu.Unlock()
						select {
						case <-time.After(wait(err)):
							continue
						case <-ctx.Done():
						}
					}
					if code := status.Code(err); (code == codes.Unavailable || code == codes.OK) && server.killed(from, time.Now()) {
						broken.Add(1)
						break
					}
					spent := slices.Equal(said.Get("x-weir-gave-up"), []string{retry.ErrBudget.Error()})
					if spent && server.killed(begin, time.Now()) { // all within ten seconds, the budget's period
						broken.Add(1)
						break
					}
					t.Errorf("seed %d: %s %s %d: %v, want %v", seed, k.method, k.name, id, err, k.code)
					break
				}
				cancel()
			}
		})
	}
	calling.Wait()
	killing.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for n, at := range f.came { // calls that arrived by then were admitted by then
		if most := burst + rate*at.Sub(begin).Seconds(); float64(n+1) > most {
			t.Fatalf("seed %d: %d calls had come after %v, more than %.0f", seed, n+1, at.Sub(begin), most)
		}
	}
	t.Logf("%d attempts came in %v; %d calls broke with their server; weir refused %v", len(f.came), time.Since(begin), broken.Load(), no)
	if n := broken.Load(); n > calls/10 {
		t.Errorf("seed %d: %d calls broke with their server", seed, n)
	}
	server.g.GracefulStop() // returns after the last call, so that disconnected callers are reported
}

func pick(r *rand.Rand) kind {
	n := r.IntN(100)
	for _, k := range kinds {
		if n -= k.share; n < 0 {
			return k
		}
	}
	panic("shares")
}
