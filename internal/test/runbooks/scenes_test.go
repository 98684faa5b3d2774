//go:build unix

package runbooks

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
	"syscall"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// A scene is a weir during a fault.
type scene struct {
	*testing.T
	w    *served.Process
	up   upstream
	url  string
	heal func() // ends the fault, as the responsible person would
	ends string // heading before which the fault ends; "" means the last section

	alias []string // names that change between runs, each with its replacement on the page
}

// An upstream responds as configured.
type upstream struct {
	status atomic.Int32 // 0 means that every other call fails
	bad    atomic.Value // model that fails; "" means all
	n      atomic.Int32
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if websocket.Wants(r) {
		u.talk(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	status := int(u.status.Load())
	if status == 0 {
		status = []int{200, 500}[u.n.Add(1)%2]
	}
	if model, _ := u.bad.Load().(string); !strings.Contains(string(body), model) {
		status = 200
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status == 200 {
		_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000000,"completion_tokens":10,"total_tokens":1000010}}`)
		return
	}
	_, _ = io.WriteString(w, "{}")
}

// talk returns messages of a WebSocket, or closes it while the upstream fails.
func (u *upstream) talk(w http.ResponseWriter, r *http.Request) {
	c, err := ws.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	for u.status.Load() == 200 {
		typ, msg, err := c.Read(r.Context())
		if err != nil || c.Write(r.Context(), typ, msg) != nil {
			return
		}
	}
}

// dial returns a caller's WebSocket, or nil if it is refused. It ends with the test.
func (s *scene) dial() *ws.Conn {
	ctx, cancel := context.WithTimeout(s.Context(), served.Patience)
	defer cancel()
	c, _, err := ws.Dial(ctx, "ws://"+s.w.Serve.Listen+"/api/chat", &ws.DialOptions{HTTPHeader: http.Header{"X-Correlation-Id": {"7f3a"}}})
	if err != nil {
		return nil
	}
	s.Cleanup(func() { _ = c.CloseNow() })
	return c
}

// says sends a message and returns the response.
func (s *scene) says(c *ws.Conn, text string) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), served.Patience)
	defer cancel()
	if err := c.Write(ctx, ws.MessageText, []byte(text)); err != nil {
		s.Fatal(err)
	}
	_, answer, err := c.Read(ctx)
	if err != nil {
		s.Fatal(err)
	}
	return string(answer)
}

// put writes a file next to weir.yaml.
func (s *scene) put(name, text string) {
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.w.File), name), []byte(text), 0o600); err != nil {
		s.Fatal(err)
	}
}

// begin starts weir with an upstream named api, whose address replaces URL in the text.
func begin(t *testing.T, status int32, text string, env ...string) *scene {
	t.Helper()
	s := &scene{T: t}
	s.up.status.Store(status)
	server := httptest.NewServer(&s.up)
	t.Cleanup(server.Close)
	s.url = server.URL
	s.heal = func() { s.up.status.Store(200) }
	s.serve(text, env...)
	return s
}

// serve starts weir, or restarts it with another environment.
func (s *scene) serve(text string, env ...string) {
	s.Helper()
	s.w = served.Start(s, "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"+strings.ReplaceAll(text, "URL", s.url), env...)
}

// call makes n calls, some concurrently.
func (s *scene) call(n int, path, body string) {
	var calls sync.WaitGroup
	for range n {
		calls.Go(func() {
			r, err := http.NewRequest("POST", "http://"+s.w.Serve.Listen+"/api"+path, strings.NewReader(body))
			if err != nil {
				s.Error(err)
				return
			}
			r.Header.Set("Idempotency-Key", fmt.Sprint(time.Now().UnixNano())) // allows retries
			r.Header.Set("X-Correlation-Id", "7f3a")
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	calls.Wait()
}

// scenes cause the fault of each alert.
var scenes = map[string]func(t *testing.T) *scene{
	"upstream-failing.md": down,
	"burn-fast.md":        down,
	"burn-slow.md":        down,
	"failing-quietly.md":  down,
	"breaker-open.md":     down,
	"high-throttling.md":  overLimit,
	"violation.md":        violating,
	"budget-empty.md":     spent,
	"waiting-long.md":     waiting,
	"quota-low.md":        quotaLow,
	"fallback.md":         storeAway,
	"store-away.md":       storeAway,
	"store-cold.md":       storeCold,
	"part-reserved.md":    partReserved,
	"dead-letters.md":     deadLetters,

	"deliveries-waiting.md": waitingDeliveries,
	"degraded.md":           degraded,
	"chain-down.md":         chainDown,
	"cost-high.md":          costly,
	"spending-high.md":      almostSpent,
	"down.md":               gone,
	"reload-failed.md":      mistaken,
	"trouble.md":            keyless,
	"certificate-ends.md":   ending,

	"messages-refused.md":    tooManyMessages,
	"connections-refused.md": crowded,
	"connections-full.md":    crowded,
	"connections-lost.md":    dropped,
}

const plain = "upstreams:\n  api: {url: URL}\n"

func down(t *testing.T) *scene {
	s := begin(t, 500, plain)
	for range 12 {
		s.call(8, "/orders", "x")
	}
	return s
}

func overLimit(t *testing.T) *scene {
	s := begin(t, 200, "upstreams:\n  api: {url: URL, max_wait: off, limits: {all: 5/min}}\n")
	s.heal = func() {
		s.w.Reload(strings.ReplaceAll("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  api: {url: URL, max_wait: off, limits: {all: 500/s}}\n", "URL", s.url), "reloaded")
	}
	s.call(50, "/orders", "x")
	return s
}

const talking = "upstreams:\n  api:\n    url: URL\n    routes: [{path: /api/, strip: true, websocket: true}]\n    keys: {user: \"header:X-User\"}\n"

func tooManyMessages(t *testing.T) *scene {
	const text = talking + "    websocket: {route_by: action}\n    limits: {sends: {rate: RATE, scope: connection, operations: send}}\n"
	s := begin(t, 200, strings.ReplaceAll(text, "RATE", "5/min"))
	c := s.dial()
	if c == nil {
		t.Fatal("there is no connection")
	}
	refused := ""
	for range 30 {
		refused = s.says(c, `{"action":"send","text":"hello"}`)
	}
	s.put("refused.json", refused+"\n")
	_, id, _ := strings.Cut(refused, `"connectionId":"`)
	id, _, _ = strings.Cut(id, `"`)
	s.alias = []string{id, "Zk2P1s0xQJ6Yw3aB"}
	s.heal = func() {
		s.w.Reload("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"+strings.NewReplacer("URL", s.url, "RATE", "500/s").Replace(text), "reloaded")
		s.says(c, `{"action":"send","text":"hello"}`)
	}
	return s
}

func crowded(t *testing.T) *scene {
	const text = talking + "    websocket: {connections: MOST}\n"
	s := begin(t, 200, strings.ReplaceAll(text, "MOST", "20"))
	for range 20 {
		if s.dial() == nil {
			t.Fatal("there is no connection")
		}
	}
	for range 10 {
		if s.dial() != nil {
			t.Fatal("there is a connection too many")
		}
	}
	s.heal = func() {
		s.w.Reload("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"+strings.NewReplacer("URL", s.url, "MOST", "200").Replace(text), "reloaded")
		if s.dial() == nil {
			t.Error("there is no connection")
		}
	}
	return s
}

func dropped(t *testing.T) *scene {
	s := begin(t, 500, talking)
	for range 5 {
		if s.dial() == nil {
			t.Fatal("there is no connection")
		}
		s.w.WaitFor("websocket closed")
	}
	s.heal = func() {
		s.up.status.Store(200)
		if c := s.dial(); c != nil {
			s.says(c, "hello")
		}
	}
	return s
}

func violating(t *testing.T) *scene {
	s := begin(t, 429, "upstreams:\n  api: {url: URL, limits: {all: 1000/s}}\n")
	s.call(4, "/orders", "x")
	return s
}

func spent(t *testing.T) *scene {
	s := begin(t, 0, "upstreams:\n  api: {url: URL, breaker: off, retry: {attempts: 5}}\n")
	for range 10 {
		s.call(20, "/orders", "x")
	}
	return s
}

func waiting(t *testing.T) *scene {
	s := begin(t, 200, "upstreams:\n  api: {url: URL, limits: {all: {rate: 10/s, burst: 1}}}\n")
	s.call(25, "/orders", "x")
	return s
}

func quotaLow(t *testing.T) *scene {
	s := begin(t, 200, "upstreams:\n  api: {url: URL, limits: {day: {amount: 100, every: day}}}\n")
	s.heal = func() {}
	s.call(85, "/orders", "x")
	return s
}

func storeAway(t *testing.T) *scene {
	store := servers.Redis(t)
	s := begin(t, 200, "store: {redis: "+store.URL()+"}\nupstreams:\n  api: {url: URL, max_wait: 1s, limits: {all: 1000/s}}\n")
	s.w.WaitFor("store is cold")
	served.Init(t, nil, s.w.File)
	s.call(1, "/orders", "x")
	store.Kill()
	s.heal = store.Restart
	s.call(4, "/orders", "x")
	s.w.WaitFor("fallback activated")
	return s
}

// storeCold makes a store with a quota lose its data.
func storeCold(t *testing.T) *scene {
	store := servers.Redis(t)
	s := begin(t, 200, "store: {redis: "+store.URL()+"}\nupstreams:\n  api: {url: URL, max_wait: off, limits: {quota: 1000/day}}\n")
	s.w.WaitFor("store is cold")
	s.call(1, "/orders", "x")
	s.heal = func() { served.Init(t, nil, s.w.File) }
	return s
}

// partReserved has a process with half of each limit stop responding, with an outage of ten minutes.
func partReserved(t *testing.T) *scene {
	server := servers.Redis(t)
	store, err := redisstore.Open(server.URL(), redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	beat := func(b fleet.Beat) {
		b.Group, b.Client, b.Silence, b.Life = "api", "gone", 1, 600e6
		for {
			if _, err := store.Beat(t.Context(), &b); err == nil {
				return
			}
			select { // wait for its connection
			case <-t.Context().Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	beat(fleet.Beat{Seq: 1, Gen: 1, Part: fleet.Whole / 2, Goes: true})
	s := begin(t, 200, "store: {redis: "+server.URL()+"}\nupstreams:\n  api: {url: URL, max_wait: 1s, limits: {all: 1000/s}}\n")
	served.Init(t, nil, s.w.File)
	s.call(1, "/orders", "x")
	s.heal = func() { beat(fleet.Beat{Seq: 2, Leave: true, Dead: true}) }
	return s
}

func deadLetters(t *testing.T) *scene {
	dir := t.TempDir()
	s := begin(t, 400, "deliveries: {file: "+filepath.Join(dir, "deliveries.db")+"}\nupstreams:\n  api: {url: URL, routes: [{path: /api/, strip: true, deliver: always}]}\n")
	s.call(2, "/orders", "x")
	s.w.WaitFor("deliveries became dead letters")
	s.ends = "## Mitigation" // a repeated request must succeed
	return s
}

func waitingDeliveries(t *testing.T) *scene {
	s := begin(t, 500, "deliveries: {file: "+filepath.Join(t.TempDir(), "deliveries.db")+"}\nupstreams:\n  api: {url: URL, breaker: off, routes: [{path: /api/, strip: true, deliver: always}]}\n")
	s.call(2, "/orders", "x")
	return s
}

const chat = "upstreams:\n  api:\n    preset: openai\n    url: URL\n    llm:\n      family: openai\n      key_env: KEY\n      cascade:\n        tiers:\n          - {name: second, model: gpt-4o-mini}\n          - {message: \"Please ask again later.\"}\n"

func ask(s *scene, n int) {
	for range n {
		s.call(1, "/v1/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}`)
	}
}

func degraded(t *testing.T) *scene {
	s := begin(t, 500, chat, "KEY=x")
	s.up.bad.Store(`"gpt-4o"`)
	ask(s, 5)
	return s
}

func chainDown(t *testing.T) *scene {
	s := begin(t, 500, chat, "KEY=x")
	ask(s, 6)
	return s
}

func costly(t *testing.T) *scene {
	s := begin(t, 200, chat, "KEY=x")
	ask(s, 3)
	return s
}

// almostSpent spends 7.50 of 9 dollars. The person raises the budget.
func almostSpent(t *testing.T) *scene {
	const limits = "    limits: {money: {amount: AMOUNT, every: month, unit: usd}}\n"
	s := begin(t, 200, chat+strings.Replace(limits, "AMOUNT", "9", 1), "KEY=x")
	s.heal = func() {
		s.w.Reload("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n"+strings.ReplaceAll(chat+strings.Replace(limits, "AMOUNT", "20", 1), "URL", s.url), "reloaded")
	}
	ask(s, 3)
	return s
}

func gone(t *testing.T) *scene {
	s := begin(t, 200, plain)
	if err := s.w.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.w.Exited()
	s.heal = func() { s.serve(plain) }
	return s
}

func mistaken(t *testing.T) *scene {
	s := begin(t, 200, plain)
	s.w.Reload(strings.ReplaceAll("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  api: {url: URL, limits: {all: fast}}\n", "URL", s.url), "reload: nothing was changed")
	s.heal = func() {
		s.w.Write("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n" + strings.ReplaceAll(plain, "URL", s.url))
		if err := s.w.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func keyless(t *testing.T) *scene {
	text := "upstreams:\n  api: {url: URL, preset: dynamodb, aws: {region: eu-west-1}}\n"
	nowhere := filepath.Join(t.TempDir(), "none")
	none := []string{"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=" + nowhere, "AWS_SHARED_CREDENTIALS_FILE=" + nowhere, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="}
	s := begin(t, 200, text, none...)
	s.w.WaitFor("trouble")
	s.heal = func() {
		s.serve(text, append(none, "AWS_ACCESS_KEY_ID=AKIA", "AWS_SECRET_ACCESS_KEY=secret")...)
	}
	return s
}

func ending(t *testing.T) *scene {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	servers.WriteCertificate(t, cert, key, -95*time.Hour, 5*time.Hour)
	s := begin(t, 200, "tls: {cert: "+cert+", key: "+key+"}\n"+plain)
	if err := os.Symlink(cert, filepath.Join(filepath.Dir(s.w.File), "cert.pem")); err != nil {
		t.Fatal(err)
	}
	s.heal = func() { servers.WriteCertificate(t, cert, key, -time.Hour, 99*time.Hour) }
	return s
}
