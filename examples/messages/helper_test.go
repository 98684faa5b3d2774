package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

// built is the directory of the built program.
var built string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "messages")
	if err != nil {
		panic(err)
	}
	built = dir
	watchdog.Start()
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// An issuer signs tokens and serves its keys.
type issuer struct {
	*httptest.Server
	key *ecdsa.PrivateKey
	set []byte // the served keys
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newIssuer(t testing.TB) *issuer {
	i := &issuer{key: newKey(t)}
	public, err := i.key.PublicKey.Bytes() // 0x04, x, y
	if err != nil {
		t.Fatal(err)
	}
	part := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	i.set, _ = json.Marshal(map[string]any{"keys": []any{map[string]any{
		"kty": "EC", "crv": "P-256", "kid": "one", "alg": "ES256", "use": "sig", "x": part(public[1:33]), "y": part(public[33:]),
	}}})
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(i.set) }))
	t.Cleanup(i.Close)
	return i
}

const audience = "messages"

// token returns a caller's token, with optional other claims.
func (i *issuer) token(t testing.TB, who, scope string, other jwt.MapClaims) string {
	claims := jwt.MapClaims{"iss": i.URL, "aud": audience, "sub": who, "scope": scope, "exp": time.Now().Add(time.Hour).Unix()}
	for name, v := range other {
		claims[name] = v
	}
	return signed(t, jwt.SigningMethodES256, claims, i.key)
}

func signed(t testing.TB, method jwt.SigningMethod, claims jwt.MapClaims, key any) string {
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = "one"
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lines collects log lines and lets tests wait for them.
type lines struct {
	mu      sync.Mutex
	all     []map[string]any
	written chan struct{} // closed at the next line
}

func (l *lines) Write(b []byte) (int, error) {
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, v)
	if l.written != nil {
		close(l.written)
		l.written = nil
	}
	return len(b), nil
}

// A split writes the output of a process line by line.
type split struct {
	to   *lines
	rest []byte
}

func (s *split) Write(b []byte) (int, error) {
	s.rest = append(s.rest, b...)
	for {
		line, rest, ok := bytes.Cut(s.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		s.rest = rest
		if _, err := s.to.Write(line); err != nil {
			fmt.Fprintf(os.Stderr, "%s\n", line)
		}
	}
}

// wait returns and removes the first line with a message for which ok returns true.
func (l *lines) wait(t testing.TB, message string, ok func(map[string]any) bool) map[string]any {
	t.Helper()
	for {
		l.mu.Lock()
		for i, v := range l.all {
			if v["msg"] == message && (ok == nil || ok(v)) {
				l.all = append(l.all[:i:i], l.all[i+1:]...)
				l.mu.Unlock()
				return v
			}
		}
		if l.written == nil {
			l.written = make(chan struct{})
		}
		next := l.written
		l.mu.Unlock()
		select {
		case <-next:
		case <-t.Context().Done():
			t.Fatalf("the log never said %q", message)
		}
	}
}

func newLog(l *lines) *slog.Logger { return slog.New(slog.NewJSONHandler(l, nil)) }

// of matches the lines of one message.
func of(id string) func(map[string]any) bool {
	return func(v map[string]any) bool { return v["message"] == id }
}

// A world is the program with its upstream and its issuer.
type world struct {
	t      *testing.T
	ntfy   *fakeNtfy
	issuer *issuer
	o      Options
	log    *lines
	url    string
	stop   func()
	as     string // the token of requests
}

// newWorld starts the program. set changes its options.
func newWorld(t *testing.T, set func(*world)) *world {
	w := &world{t: t, ntfy: newNtfy(t), issuer: newIssuer(t), log: &lines{}}
	w.o = Options{
		Listen: "127.0.0.1:0", File: filepath.Join(t.TempDir(), "messages.db"), Ntfy: "http://ntfy.sh", Topic: "team", Base: w.ntfy.asNtfySh(),
		JWKS: w.issuer.URL, Issuer: w.issuer.URL, Audience: audience, Choices: Choices{Open: "fail", Lost: "again"},
	}
	w.as = w.issuer.token(t, "ada", "", nil)
	if set != nil {
		set(w)
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) start() {
	ctx, cancel := context.WithCancel(w.t.Context())
	over := make(chan error, 1)
	go func() { over <- Serve(ctx, w.o, newLog(w.log)) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			w.t.Error(err)
		}
	})
	began := make(chan string, 1)
	go func() { began <- fmt.Sprint(w.log.wait(w.t, "serves", nil)["address"]) }()
	select {
	case at := <-began:
		w.url = "http://" + at
	case err := <-over:
		w.t.Fatal(err)
	}
}

// A response is a response of the API.
type response struct {
	status int
	header http.Header
	text   string
	Message
	Messages []Message
	Next     string
	Error    struct {
		Code, Message string
		Details       map[string]any
	}
}

// ask sends a request. headers are name, value, name, value.
func (w *world) ask(method, path, body string, headers ...string) *response {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if w.as != "" {
		r.Header.Set("Authorization", "Bearer "+w.as)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	conforms(w.t, r, body, got, text)
	out := &response{status: got.StatusCode, header: got.Header, text: string(text)}
	if bytes.HasPrefix(text, []byte("{")) {
		if err := json.Unmarshal(text, out); err != nil {
			w.t.Fatalf("%v: %s", err, text)
		}
	}
	return out
}

// post submits a message, which must be accepted.
func (w *world) post(stage, text string, headers ...string) string {
	w.t.Helper()
	body, err := json.Marshal(map[string]string{"stage": stage, "text": text, "title": "build"})
	if err != nil {
		w.t.Fatal(err)
	}
	got := w.ask("POST", "/api/messages", string(body), headers...)
	if got.status != http.StatusAccepted || got.ID == "" || got.header.Get("Location") != "/api/messages/"+got.ID {
		w.t.Fatalf("%d %s", got.status, got.text)
	}
	return got.ID
}

// operator returns a world that sends requests as an operator.
func (w *world) operator() *world {
	o := *w
	o.as = w.issuer.token(w.t, "op", "operator", nil)
	return &o
}
