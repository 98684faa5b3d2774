package grpctest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// node returns the command for testdata/echo.cjs with the arguments.
func node(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	modules, err := filepath.Abs("../../../.deps/grpcjs/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(modules); err != nil {
		t.Fatalf("%v; run make deps", err)
	}
	cmd := exec.CommandContext(ctx, "node", append([]string{"testdata/echo.cjs"}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "NODE_NO_WARNINGS=1")
	cmd.WaitDelay = patience
	return cmd
}

// serveNode serves the same as faulty, in JavaScript.
func serveNode(t *testing.T) (address string) {
	t.Helper()
	cmd := node(context.WithoutCancel(t.Context()), t, "serve")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "serving "))
}

// jsLimit is a limit that admits the cases and then refuses.
const (
	jsBurst = 420
	jsCases = 11
	jsMore  = "limits: {all: {rate: 1/min, burst: 420}}\noperations: {safe: {path: /weir.test.Echo/Safe, safe: yes}}\nbreaker: off"
)

// jsCalls calls an address from JavaScript and counts successes.
func jsCalls(t *testing.T, address string) {
	t.Helper()
	out, err := node(within(t), t, "call", address, fmt.Sprint(jsBurst)).CombinedOutput()
	if n := strings.Count(string(out), ": good"); err != nil || n != jsCases {
		t.Errorf("%d of %d cases are good (%v)\n%s", n, jsCases, err, out)
	}
}

// The JavaScript library calls through weir: a Go server and a JavaScript server.
func TestJavaScriptCalls(t *testing.T) {
	t.Run("Go", func(t *testing.T) {
		s := new(faulty).service()
		s.stream = jsStreams
		_, at := serve(t, s)
		jsCalls(t, before(t, at, jsMore).Serve.Listen)
	})
	t.Run("JavaScript", func(t *testing.T) { jsCalls(t, before(t, serveNode(t), jsMore).Serve.Listen) })
}

// jsStreams handles streams like the JavaScript service.
func jsStreams(g grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(g)
	if strings.HasSuffix(method, "Both") {
		return both(g)
	}
	n, last := 0, new(text)
	for in := new(text); g.RecvMsg(in) == nil; in = new(text) {
		n, last = n+1, in
	}
	if strings.HasSuffix(method, "Up") {
		return g.SendMsg(&text{Value: fmt.Append(nil, n)})
	}
	for range 3 {
		if err := g.SendMsg(last); err != nil {
			return err
		}
	}
	return does(g.Context(), string(last.Value))
}

// A Go client calls a JavaScript server through weir.
func TestJavaScriptServes(t *testing.T) {
	conn, ctx := dial(t, before(t, serveNode(t), "operations: {safe: {path: /weir.test.Echo/Safe, safe: yes}}\nbreaker: off\nbudget: {share: 100%}").Serve.Listen, grpc.WithDisableRetry()), within(t)
	for i := range 40 {
		for _, k := range []kind{
			{"ok", "Unary", codes.OK, 0}, {"status", "Unary", codes.FailedPrecondition, 0}, {"throttle", "Unary", codes.OK, 0},
			{"flaky", "Unary", codes.Unavailable, 0}, {"ok", "Both", codes.OK, 0},
		} {
			err := k.call(ctx, conn, i)
			if status.Code(err) != k.code {
				t.Fatalf("%s %s: %v", k.method, k.name, err)
			}
			if k.name == "status" && (status.Convert(err).Message() != "50% – done" || wait(err) == 0) {
				t.Fatalf("%v, %v", err, status.Convert(err).Details())
			}
		}
	}
	if err := (kind{"flaky", "Safe", codes.OK, 0}).call(ctx, conn, 0); err != nil {
		t.Error(err)
	}
	if err := (kind{"slow", "Unary", codes.DeadlineExceeded, 0}).call(ctx, conn, 0); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
}
