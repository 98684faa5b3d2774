//go:build unix

package alerts

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// A whole weir has one of each feature: an upstream with limits and a quota, deliveries, a model with a cascade and a cache,
// and a store.
type whole struct {
	*served.Process
	t      *testing.T
	status atomic.Int32 // of the upstream
	url    string
}

func (w *whole) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	if websocket.Wants(r) {
		w.echo(to, r)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	to.Header().Set("Content-Type", "application/json")
	to.WriteHeader(int(w.status.Load()))
	_, _ = io.WriteString(to, `{"id":"x","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":10,"total_tokens":20}}`)
}

// echo returns the messages of a WebSocket.
func (w *whole) echo(to http.ResponseWriter, r *http.Request) {
	c, err := ws.Accept(to, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for {
		typ, msg, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), typ, msg) != nil {
			return
		}
	}
}

// talk sends a message on a WebSocket and receives it.
func (w *whole) talk() {
	ctx, cancel := context.WithTimeout(w.t.Context(), served.Patience)
	defer cancel()
	c, _, err := ws.Dial(ctx, "wss://"+w.Serve.Listen+"/talk/", &ws.DialOptions{HTTPClient: insecure})
	if err != nil {
		w.t.Log(err) // the caller tries again
		return
	}
	defer c.CloseNow()
	if err := c.Write(ctx, ws.MessageText, []byte("hello")); err == nil {
		_, _, _ = c.Read(ctx)
	}
	_ = c.Close(ws.StatusNormalClosure, "")
}

func newWhole(t *testing.T) *whole {
	t.Helper()
	w := &whole{t: t}
	w.status.Store(200)
	up := httptest.NewServer(w)
	t.Cleanup(up.Close)
	w.url = up.URL
	dir := t.TempDir()
	servers.WriteCertificate(t, filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), -time.Minute, time.Hour)
	text := strings.NewReplacer("URL", up.URL, "STORE", servers.Redis(t).URL(), "DIR", dir).Replace(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
tls: {cert: DIR/cert.pem, key: DIR/key.pem}
store: {redis: STORE}
deliveries: {file: DIR/deliveries.db}
upstreams:
  api:
    url: URL
    operations: {list: {methods: [GET], path: /list}}
    limits: {all: 1000/s, day: {amount: 100000, every: day}}
  box: {url: URL, routes: [{path: /box/, strip: true, deliver: always}]}
  chat:
    url: URL
    preset: openai
    limits: {money: {amount: 1000, every: month, unit: usd}}
    llm:
      family: openai
      key_env: KEY
      cache: true
      cascade: {tiers: [{name: second, model: gpt-4o-mini}, {message: later}]}
  talk:
    url: URL
    routes: [{path: /talk/, strip: true, websocket: true}]
    websocket: {connections: 100}
    limits: {sends: {rate: 1000/s, operations: default}}
`)
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	served.Init(t, []string{"KEY=x"}, file)
	w.Process = served.Start(t, text, "KEY=x")
	return w
}

// call makes n simultaneous calls.
func (w *whole) call(n int, method, path, body string) {
	w.t.Helper()
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			r, err := http.NewRequest(method, "https://"+w.Serve.Listen+path, strings.NewReader(body))
			if err != nil {
				w.t.Error(err)
				return
			}
			r.Header.Set("Content-Type", "application/json")
			if resp, err := insecure.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	calls.Wait()
}

// everything makes a call of each kind.
func (w *whole) everything(i int) {
	w.call(5, "GET", "/api/list", "")
	w.call(1, "POST", "/box/x", "x")
	w.talk()
	w.call(1, "POST", "/chat/v1/chat/completions", fmt.Sprintf(`{"model":"gpt-4o","temperature":0,"messages":[{"role":"user","content":"hello %d"}]}`, i))
}
