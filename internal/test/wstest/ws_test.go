package wstest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir/internal/test/served"
)

const patience = time.Minute

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	return ctx
}

const most = 32 << 10

// file returns a configuration for an upstream.
func file(url, more string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\ndrain: 2s\nupstreams:\n  chat:\n    url: %s\n    routes: [{path: /chat/, strip: true, websocket: true}]\n    websocket: {route_by: action, max_message: 32KiB}\n%s", url, more)
}

const few = "    limits: {few: {rate: 2/h, burst: 2, operations: few}}\n"

// echo starts a server of the Go library.
func echo(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/no") {
			w.Header().Set("X-Why", "closed")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "we are closed")
			return
		}
		c, err := ws.Accept(w, r, &ws.AcceptOptions{Subprotocols: []string{"chat.v2"}, CompressionMode: ws.CompressionContextTakeover})
		if err != nil {
			return
		}
		c.SetReadLimit(-1)
		defer c.CloseNow()
		answer(c)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func answer(c *ws.Conn) {
	ctx := context.Background()
	for {
		typ, msg, err := c.Read(ctx)
		var code int
		switch text := string(msg); {
		case err != nil, text == "vanish":
			return
		case text == "ping":
			go func() {
				if c.Ping(ctx) == nil {
					_ = c.Write(ctx, ws.MessageText, []byte("pong"))
				}
			}()
			continue
		default:
			if n, _ := fmt.Sscanf(text, "close %d", &code); n == 1 {
				_ = c.Close(ws.StatusCode(code), "as asked")
				return
			}
		}
		if c.Write(ctx, typ, msg) != nil {
			return
		}
	}
}

func dial(t testing.TB, w *served.Inside, path string, o *ws.DialOptions) *ws.Conn {
	t.Helper()
	c, _, err := ws.Dial(within(t), "ws://"+w.Serve.Listen+"/chat"+path, o)
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(-1)
	t.Cleanup(func() { _ = c.CloseNow() })
	return c
}

func say(t testing.TB, c *ws.Conn, text string) string {
	t.Helper()
	if err := c.Write(within(t), ws.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, msg, err := c.Read(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return string(msg)
}

// node returns the command for testdata/ws.cjs with the arguments.
func node(ctx context.Context, t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	modules, err := filepath.Abs("../../../.deps/npm/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "ws")); err != nil {
		t.Fatalf("%v; run make deps", err)
	}
	cmd := exec.CommandContext(ctx, "node", append([]string{"testdata/ws.cjs"}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules, "NODE_NO_WARNINGS=1")
	cmd.WaitDelay = patience
	return cmd
}

func serveNode(t *testing.T) (url string) {
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
	return "http://" + strings.TrimSpace(strings.TrimPrefix(line, "serving "))
}

// The JavaScript library calls through weir: a JavaScript server and a Go server.
func TestJavaScript(t *testing.T) {
	for name, url := range map[string]func() string{"Go": func() string { return echo(t) }, "JavaScript": func() string { return serveNode(t) }} {
		t.Run(name, func(t *testing.T) {
			w := served.Begin(t, file(url(), few))
			out, err := node(within(t), t, "call", "ws://"+w.Serve.Listen+"/chat", fmt.Sprint(most)).CombinedOutput()
			if n := strings.Count(string(out), ": good"); err != nil || n != 16 {
				t.Errorf("%d of 16 cases are good (%v)\n%s", n, err, out)
			}
		})
	}
}

// page returns a page of the admin listener.
func page(t *testing.T, w *served.Inside, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + w.Serve.Admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

// Events of connections are visible, but not the browsers' credentials in Sec-WebSocket-Protocol.
func TestWhatIsSeenOfConnections(t *testing.T) {
	w := served.Begin(t, file(echo(t), few))
	c := dial(t, w, "/", &ws.DialOptions{Subprotocols: []string{"openai-insecure-api-key.sk-abcdefghij", "chat.v2"}})
	var refused string
	for range 3 {
		refused = say(t, c, `{"action":"few"}`)
	}
	_, id, _ := strings.Cut(refused, `"requestId":"`)
	id, _, _ = strings.Cut(id, `"`)
	metrics := page(t, w, "/metrics")
	for _, want := range []string{
		`weir_ws_connections{upstream="chat"} 1`,
		`weir_ws_messages_total{decision="allowed",direction="to_upstream",route="few",upstream="chat"} 2`,
		`weir_ws_messages_total{decision="refused",direction="to_upstream",route="few",upstream="chat"} 1`,
		`weir_ws_messages_total{decision="allowed",direction="to_caller",route="default",upstream="chat"} 2`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("metrics have no %s", want)
		}
	}
	why := page(t, w, "/v1/why/"+id)
	if !strings.Contains(why, "rate_limited") || !strings.Contains(why, "few") {
		t.Errorf("why %s: %s", id, why)
	}
	_ = c.Close(ws.StatusNormalClosure, "bye")
	w.WaitFor("websocket closed")
	log := w.Log()
	for _, want := range []string{`"to_upstream":2`, `"to_caller":2`, `"refused":1`, `"code":1000`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log has no %s", want)
		}
	}
	for name, text := range map[string]string{"log": log, "metrics": metrics, "why": why, "status": page(t, w, "/v1/status"), "page": page(t, w, "/")} {
		if strings.Contains(text, "sk-abcdefghij") {
			t.Errorf("the %s shows the key", name)
		}
	}
}

func TestAThousandConnections(t *testing.T) {
	w := served.Begin(t, file(echo(t), few))
	const n = 1000
	all := make([]*ws.Conn, n)
	var wg sync.WaitGroup
	for part := range 10 {
		wg.Go(func() {
			for i := part; i < n; i += 10 {
				all[i] = dial(t, w, "/", nil)
			}
		})
	}
	wg.Wait()
	if metrics := page(t, w, "/metrics"); !strings.Contains(metrics, `weir_ws_connections{upstream="chat"} 1000`) {
		t.Error("there are not 1000 in the metrics")
	}
	for part := range 10 {
		wg.Go(func() {
			for i := part; i < n; i += 10 {
				text := fmt.Sprint("message of ", i)
				if got := say(t, all[i], text); got != text {
					t.Errorf("%d got %q", i, got)
				}
				_ = all[i].Close(ws.StatusNormalClosure, "")
			}
		})
	}
	wg.Wait()
	for range n {
		w.WaitFor("websocket closed")
	}
	if metrics := page(t, w, "/metrics"); !strings.Contains(metrics, `weir_ws_connections{upstream="chat"} 0`) || !strings.Contains(metrics, `weir_ws_closed_total{code="1000",upstream="chat"} 1000`) {
		t.Error("they have not all ended with 1000")
	}
}

func code(t *testing.T, c *ws.Conn) ws.StatusCode {
	t.Helper()
	_, _, err := c.Read(within(t))
	var e ws.CloseError
	if !errors.As(err, &e) {
		t.Fatalf("it ended with %v", err)
	}
	return e.Code
}

// A reload that keeps the route keeps connections. A reload that removes it ends them, as does weir's shutdown.
func TestReloadAndDrain(t *testing.T) {
	url := echo(t)
	w := served.Begin(t, file(url, few))
	first := dial(t, w, "/", nil)
	reload := func(yaml string) {
		if err := os.WriteFile(w.File, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		resp, err := http.Post("http://"+w.Serve.Admin+"/v1/reload", "", nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("reload: %v, %v", resp, err)
		}
		resp.Body.Close()
	}
	reload(file(url, "    limits: {few: {rate: 1/h, burst: 1, operations: default}}\n"))
	if got := say(t, first, "x"); got != "x" && !strings.Contains(got, "RATE_LIMIT_EXCEEDED") {
		t.Errorf("got %s", got)
	}
	if got := say(t, first, "x"); !strings.Contains(got, "RATE_LIMIT_EXCEEDED") {
		t.Errorf("the limit of the new file does not hold: %s", got)
	}
	reload(strings.ReplaceAll(file(url, few), "/chat/", "/talk/"))
	if got := code(t, first); got != ws.StatusGoingAway {
		t.Errorf("without its route: %v", got)
	}
	reload(file(url, few))
	last := dial(t, w, "/", nil)
	ended := make(chan error, 1)
	go func() { ended <- w.Stop() }()
	if got := code(t, last); got != ws.StatusServiceRestart {
		t.Errorf("at the end of weir: %v", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
