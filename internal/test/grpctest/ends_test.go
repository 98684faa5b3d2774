package grpctest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The upstream gets the caller's remaining deadline. A call whose turn cannot come in time is refused immediately. A call that
// times out ends with the deadline's status, whichever side notices first.
func TestDeadlines(t *testing.T) {
	left := make(chan time.Duration, 10)
	s := &service{unary: func(ctx context.Context, in *text) (*text, error) {
		at, ok := ctx.Deadline()
		if !ok {
			left <- 0
		} else {
			left <- time.Until(at)
		}
		if string(in.Value) == "slow" {
			<-ctx.Done()
		}
		return in, nil
	}}
	_, at := serve(t, s)
	conn := dial(t, before(t, at, "").Serve.Listen)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := ask(ctx, conn, "x"); err != nil {
		t.Fatal(err)
	}
	if d := <-left; d <= 0 || d > patience {
		t.Errorf("the upstream was given %v of %v", d, patience)
	}
	if _, err := ask(t.Context(), conn, "x"); err != nil || <-left != 0 {
		t.Errorf("a deadline that nobody has said, or %v", err)
	}
	for long, heard := 100*time.Millisecond, false; !heard; long *= 2 { // a busy machine may need longer to reach the upstream
		short, cancel := context.WithTimeout(t.Context(), long)
		_, err := ask(short, conn, "slow")
		cancel()
		if status.Code(err) != codes.DeadlineExceeded {
			t.Fatalf("a call that takes too long: %v", err)
		}
		select {
		case <-left:
			heard = true
		default:
		}
	}
	conn = dial(t, before(t, at, "limits: {all: {rate: 6/h, burst: 1}}").Serve.Listen)
	if _, err := ask(within(t), conn, "x"); err != nil {
		t.Fatal(err)
	}
	begin, soon := time.Now(), within(t) // the next turn is in ten minutes
	if _, err := ask(soon, conn, "x"); status.Code(err) != codes.ResourceExhausted || soon.Err() != nil {
		t.Errorf("a call whose turn comes too late: %v after %v", err, time.Since(begin))
	}
}

// If a caller disconnects, the upstream's call ends. If the upstream ends a stream, the caller's ends.
func TestEndsComeThroughBothWays(t *testing.T) {
	gone := make(chan error, 1)
	s := &service{stream: func(g grpc.ServerStream) error {
		in := new(text)
		if err := g.RecvMsg(in); err != nil {
			return err
		}
		_ = g.SendMsg(in)
		if string(in.Value) == "stay" {
			<-g.Context().Done()
			gone <- g.Context().Err()
			return nil
		}
		return status.Error(codes.Aborted, "enough")
	}}
	server, at := serve(t, s)
	conn := dial(t, before(t, at, "").Serve.Listen)
	begin := func(ctx context.Context, say string) grpc.ClientStream {
		g, err := open(ctx, conn, "Both")
		if err == nil {
			err = g.SendMsg(&text{Value: []byte(say)})
		}
		if err == nil {
			err = g.RecvMsg(new(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	ctx, cancel := context.WithCancel(within(t))
	begin(ctx, "stay")
	cancel()
	if err := <-gone; err == nil {
		t.Error("the upstream did not hear that the caller has left")
	}
	if err := begin(within(t), "end").RecvMsg(new(text)); status.Code(err) != codes.Aborted {
		t.Errorf("an end in the middle of what the caller sends: %v", err)
	}
	g := begin(within(t), "stay")
	server.Stop()
	if err := g.RecvMsg(new(text)); status.Code(err) != codes.Unavailable {
		t.Errorf("a server that is killed: %v", err)
	}
	if _, err := ask(within(t), conn, "x"); status.Code(err) != codes.Unavailable {
		t.Errorf("a server that is not there: %v", err)
	}
}

// A server that sends GOAWAY every few calls loses no call.
func TestConnectionsThatEndByGoaway(t *testing.T) {
	_, at := serve(t, &service{unary: echoes, stream: both}, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 20 * time.Millisecond, MaxConnectionAgeGrace: time.Minute}))
	conn, ctx := dial(t, before(t, at, "").Serve.Listen), within(t)
	for begin := time.Now(); time.Since(begin) < 500*time.Millisecond; {
		if _, err := ask(ctx, conn, "x"); err != nil {
			t.Fatal(err)
		}
		if err := (kind{"ok", "Both", codes.OK, 0}).call(ctx, conn, 1); err != nil {
			t.Fatal(err)
		}
	}
}

// Messages can be as large as client and server allow.
func TestLargeMessages(t *testing.T) {
	const size = 20 << 20
	s := &service{unary: echoes}
	_, at := serve(t, s, grpc.MaxRecvMsgSize(2*size), grpc.MaxSendMsgSize(2*size))
	conn := dial(t, before(t, at, "").Serve.Listen)
	large := strings.Repeat("x", size)
	if got, err := ask(within(t), conn, large, grpc.MaxCallRecvMsgSize(2*size), grpc.MaxCallSendMsgSize(2*size)); err != nil || len(got) != size {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := ask(within(t), conn, large); status.Code(err) != codes.ResourceExhausted || s.calls.Load() != 2 {
		t.Errorf("more than the client takes: %v after %d calls", err, s.calls.Load())
	}
}

// A caller that does not read slows down the upstream and does not use up weir's memory.
func TestASlowReaderHoldsUpTheUpstream(t *testing.T) {
	const piece, most = 64 << 10, 16 << 20 // windows of both connections and of the client
	stuck := make(chan int, 1)
	s := &service{stream: func(g grpc.ServerStream) error {
		if err := g.RecvMsg(new(text)); err != nil {
			return err
		}
		out, n := &text{Value: bytes.Repeat([]byte("x"), piece)}, 0
		sent := make(chan struct{})
		defer close(sent)
		for ; n < 4*most; n += piece {
			alone := time.AfterFunc(time.Second, func() {
				select {
				case stuck <- n:
				default:
				}
			})
			err := g.SendMsg(out)
			alone.Stop()
			if err != nil {
				return err
			}
		}
		stuck <- n
		return nil
	}}
	_, at := serve(t, s)
	conn := dial(t, before(t, at, "").Serve.Listen)
	g, err := open(within(t), conn, "Down")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = g.SendMsg(new(text)), g.CloseSend()
	if n := <-stuck; n >= most {
		t.Errorf("%d bytes were taken of an answer that nobody reads", n)
	}
	n := 0
	for { // the complete message arrives when it is read
		out := new(text)
		if err := g.RecvMsg(out); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		n += len(out.Value)
	}
	if n < 4*most {
		t.Errorf("%d bytes came", n)
	}
}

// A response other than gRPC passes unchanged, and the client converts it to a status.
func TestAnswersThatAreNoGRPC(t *testing.T) {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mode") == "reset" {
			panic(http.ErrAbortHandler)
		}
		if mode := r.Header.Get("Mode"); mode != "" { // after a head and a message
			if mode == "announced" { // announced trailers are missing, and there are two different ones
				w.Header().Set("Trailer", "X-A, X-B")
			}
			w.Header().Set("Content-Type", "application/grpc")
			_, _ = w.Write([]byte{0, 0, 0, 0, 0})
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		http.Error(w, "not here", http.StatusServiceUnavailable)
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	conn := dial(t, before(t, l.Addr().String(), "retry: off").Serve.Listen)
	for mode, want := range map[string]codes.Code{"": codes.Unavailable, "reset": codes.Unavailable, "cut": codes.Internal, "announced": codes.Internal} {
		if _, err := ask(metadata.AppendToOutgoingContext(within(t), "mode", mode), conn, "x"); status.Code(err) != want || want == codes.Internal && !strings.Contains(err.Error(), "the upstream reset the stream") {
			t.Errorf("%q: %v, want %v", mode, err, want)
		}
	}
}
