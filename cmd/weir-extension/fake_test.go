package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

// A lambda is the Extensions API and the Telemetry API of one sandbox, over real HTTP.
type lambda struct {
	t      *testing.T
	server *httptest.Server
	events chan event
	asked  chan struct{} // one value for each waiting next

	mu          sync.Mutex
	name        string
	subscribed  []string
	failure     string // error type of init/error
	broken      int    // number of next responses that are errors
	noTelemetry bool
	sink        string // URL for events
}

func newLambda(t *testing.T) *lambda {
	l := &lambda{t: t, events: make(chan event), asked: make(chan struct{}, 100)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2020-01-01/extension/register", l.register)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", l.next)
	mux.HandleFunc("POST /2020-01-01/extension/init/error", func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.failure = r.Header.Get("Lambda-Extension-Function-Error-Type") + " " + string(text)
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("PUT /2022-07-01/telemetry", l.subscribe)
	l.server = httptest.NewServer(mux)
	t.Cleanup(l.server.Close)
	return l
}

func (l *lambda) register(w http.ResponseWriter, r *http.Request) {
	var in struct{ Events []string }
	_ = json.NewDecoder(r.Body).Decode(&in)
	l.mu.Lock()
	l.name, l.subscribed = r.Header.Get("Lambda-Extension-Name"), in.Events
	l.mu.Unlock()
	w.Header().Set("Lambda-Extension-Identifier", "the-id")
	fmt.Fprint(w, `{"functionName":"f","functionVersion":"$LATEST","handler":"h"}`)
}

func (l *lambda) next(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Lambda-Extension-Identifier") != "the-id" {
		http.Error(w, `{"errorType":"Extension.UnknownExtensionIdentifier"}`, http.StatusForbidden)
		return
	}
	l.mu.Lock()
	broken := l.broken > 0
	l.broken--
	l.mu.Unlock()
	if broken {
		http.Error(w, "{}", http.StatusInternalServerError)
		return
	}
	l.asked <- struct{}{}
	select {
	case e := <-l.events:
		_ = json.NewEncoder(w).Encode(e)
	case <-r.Context().Done():
	}
}

func (l *lambda) subscribe(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Types       []string
		Destination struct{ URI string }
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	u, err := url.Parse(in.Destination.URI)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noTelemetry || err != nil || u.Hostname() != "sandbox.localdomain" || r.Header.Get("Lambda-Extension-Identifier") != "the-id" {
		http.Error(w, "{}", http.StatusForbidden)
		return
	}
	l.sink = "http://127.0.0.1:" + u.Port() + u.Path
}

// begins thaws the sandbox for an invocation.
func (l *lambda) begins(id string, deadline time.Time) {
	l.t.Helper()
	l.waits("the extension does not ask for the invocation " + id)
	l.events <- event{Type: invoke, RequestID: id, Deadline: deadline.UnixMilli()}
}

// done reports that the function has responded.
func (l *lambda) done(id string) {
	l.t.Helper()
	body := fmt.Sprintf(`[{"time":"2026-01-01T00:00:00Z","type":"platform.start","record":{"requestId":%q}},{"time":"2026-01-01T00:00:01Z","type":"platform.runtimeDone","record":{"requestId":%q,"status":"success"}}]`, id, id)
	resp, err := http.Post(l.sink, "application/json", strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	resp.Body.Close()
}

// waits returns when the extension requests the next event, and may be frozen.
func (l *lambda) waits(otherwise string) {
	l.t.Helper()
	select {
	case <-l.asked:
	case <-time.After(time.Minute):
		l.t.Fatal(otherwise)
	}
}

// An extension is a running extension.
type extension struct {
	*lambda
	addr   string
	log    *lines
	ended  chan error
	passed int64 // permits
}

type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const shared = `
listen: 127.0.0.1:0
decide: {listen: 127.0.0.1:0}
store: {memory: true, lease: 10s}
upstreams:
  api:
    url: http://127.0.0.1:9
    limits:
      all: {rate: 1000/s, burst: 20000}
`

// begin starts an extension in a sandbox.
func begin(t *testing.T, l *lambda, file string, store func(fleet.Store) fleet.Store, c clock.Clock) *extension {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"AWS_LAMBDA_RUNTIME_API": strings.TrimPrefix(l.server.URL, "http://"), "WEIR_CONFIG": path}
	x := &extension{lambda: l, log: &lines{}, ended: make(chan error, 1)}
	addr := make(chan net.Addr, 1)
	ctx, cancel := context.WithCancel(context.Background())
	w := world{
		args: []string{"/opt/extensions/weir-extension"}, out: x.log, env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		store: store, clock: c, telemetry: "127.0.0.1:0", serving: func(a net.Addr) { addr <- a },
	}
	go func() { x.ended <- run(ctx, w) }()
	t.Cleanup(func() {
		cancel()
		select {
		case <-x.ended:
		case <-time.After(time.Minute):
			t.Error("it does not end")
		}
		if t.Failed() {
			t.Log(x.log)
		}
	})
	select {
	case a := <-addr:
		x.addr = a.String()
	case err := <-x.ended:
		x.ended <- err
		t.Fatal(err)
	}
	return x
}

// acquires requests a permit as the function does, and reports it.
func (x *extension) acquires() (status int, answer string) {
	x.t.Helper()
	status, answer = x.post("/v1/acquire", `{"upstream":"api"}`)
	var got struct{ Permit string }
	if json.Unmarshal([]byte(answer), &got) == nil && got.Permit != "" {
		x.passed++
		if status, answer := x.post("/v1/report", fmt.Sprintf(`{"permit":%q,"status":200}`, got.Permit)); status != 200 {
			x.t.Errorf("report: %d %s", status, answer)
		}
	}
	return status, answer
}

func (x *extension) post(path, body string) (int, string) {
	x.t.Helper()
	resp, err := http.Post("http://"+x.addr+path, "application/json", strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
