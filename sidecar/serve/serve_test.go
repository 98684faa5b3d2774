package serve

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/sidecar/config"
)

// patience limits every wait of these tests.
const patience = 30 * time.Second

// A journal receives the log. Lines wait in it until a test reads them.
type journal chan string

func newJournal() journal { return make(journal, 10_000) }

func (j journal) Write(b []byte) (int, error) {
	j <- string(b)
	return len(b), nil
}

// waitFor returns the next line with a message.
func (j journal) waitFor(t testing.TB, msg string) map[string]any {
	t.Helper()
	return j.waitForAny(t, msg)
}

// waitForAny returns the next line with one of the messages.
func (j journal) waitForAny(t testing.TB, msgs ...string) map[string]any {
	t.Helper()
	late := time.After(patience)
	for {
		select {
		case text := <-j:
			line := make(map[string]any)
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if msg, _ := line["msg"].(string); slices.Contains(msgs, msg) {
				return line
			}
		case <-late:
			t.Fatalf("nobody said any of %q", msgs)
		}
	}
}

// A sidecar is a running server.
type sidecar struct {
	*Server
	log          journal
	file         string
	reload, stop chan os.Signal
	done         chan error
}

// put writes a file.
func put(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// load reads a configuration with the environment of the process.
func load(t testing.TB, file string) *config.File {
	t.Helper()
	f, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// write writes a configuration with an upstream named up.
func write(t testing.TB, file, url, more string) {
	t.Helper()
	put(t, file, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n%s\nupstreams: {up: {url: %q, max_wait: off, limits: {calls: 1000/s}}}\n", more, url))
}

func noEnv(string) (string, bool) { return "", false }

// start runs a server in front of an upstream.
func start(t testing.TB, url, more string) *sidecar {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, file, url, more)
	return startFile(t, file)
}

// startFile runs a server with a file.
func startFile(t testing.TB, file string) *sidecar {
	t.Helper()
	return startWith(t, file, noEnv)
}

// startWith is startFile with an environment.
func startWith(t testing.TB, file string, env func(string) (string, bool)) *sidecar {
	t.Helper()
	s := &sidecar{log: newJournal(), file: file, reload: make(chan os.Signal), stop: make(chan os.Signal, 2), done: make(chan error, 1)}
	var err error
	if s.Server, err = New(s.file, Options{Log: s.log, Env: env}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.done <- s.Run(ctx, s.reload, s.stop)
	}()
	t.Cleanup(func() {
		stop()
		s.stop <- os.Interrupt
		s.stop <- os.Interrupt
		select { // it may write files until then
		case <-over:
		case <-time.After(patience):
			t.Error("the server does not end")
		}
	})
	return s
}

func (s *sidecar) address() string { return s.main.Addr().String() }

// ended waits until the server has ended.
func (s *sidecar) ended(t testing.TB) {
	t.Helper()
	select {
	case err := <-s.done:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the server does not end")
	}
}

// echo is an upstream that upgrades connections and echoes every line. Under /held it responds when the caller has
// disconnected.
func echo(t testing.TB) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			<-r.Context().Done()
		}
		if r.Header.Get("Upgrade") == "" {
			return
		}
		c, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_, _ = io.Copy(c, rw)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// A tunnel is an upgraded connection.
type tunnel struct {
	net.Conn
	r *bufio.Reader
}

func upgrade(t testing.TB, address string) tunnel {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	fmt.Fprint(c, "GET /up/ HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("answered %v, %v", resp, err)
	}
	return tunnel{c, r}
}

func (c tunnel) ping(t testing.TB) {
	t.Helper()
	fmt.Fprintln(c, "ping")
	if got, err := c.r.ReadString('\n'); got != "ping\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// An upgraded connection has the same drain time as other calls.
func TestDrainWaitsForUpgradedConnections(t *testing.T) {
	t.Parallel()
	s := start(t, echo(t), "drain: 30s")
	c := upgrade(t, s.address())
	c.ping(t)
	s.stop <- syscall.SIGTERM
	s.log.waitFor(t, "draining")
	for dialed := true; dialed; { // until weir accepts no more calls
		other, err := net.Dial("tcp", s.address())
		if dialed = err == nil; dialed {
			_ = other.Close()
		}
	}
	c.ping(t)
	select {
	case err := <-s.done:
		t.Errorf("ended under an open connection: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	c.ping(t)
	_ = c.Close()
	s.log.waitFor(t, "stopped")
	s.ended(t)
}

func TestDrainCutsUpgradedConnectionsInTheEnd(t *testing.T) {
	t.Parallel()
	for _, drain := range []string{"100ms", "off"} {
		s := start(t, echo(t), "drain: "+drain)
		c := upgrade(t, s.address())
		c.ping(t)
		s.stop <- syscall.SIGTERM
		if line := s.log.waitFor(t, "stopped with calls in flight"); line["level"] != "WARN" || line["cause"] != "drain time is over" {
			t.Errorf("drain %s: says %v", drain, line)
		}
		s.ended(t)
		if b, err := io.ReadAll(c.r); len(b) > 0 || err != nil {
			t.Errorf("drain %s: read %q, %v; want the end", drain, b, err)
		}
	}
}

func TestDrainOfNothingEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, drain := range []string{"30s", "off"} {
		s := start(t, echo(t), "drain: "+drain)
		s.stop <- syscall.SIGTERM
		s.log.waitFor(t, "stopped")
		s.ended(t)
	}
}

// A second signal ends the drain.
func TestSecondSignalEndsTheDrain(t *testing.T) {
	t.Parallel()
	s := start(t, echo(t), "drain: 10m")
	held := make(chan error, 1)
	go func() {
		resp, err := http.Get("http://" + s.address() + "/up/held")
		if err == nil {
			_ = resp.Body.Close()
		}
		held <- err
	}()
	c := upgrade(t, s.address())
	s.stop <- syscall.SIGTERM
	s.log.waitFor(t, "draining")
	c.ping(t)
	s.stop <- os.Interrupt
	if line := s.log.waitFor(t, "stopped with calls in flight"); line["cause"] != "second stop signal: interrupt" {
		t.Errorf("says %v", line)
	}
	s.ended(t)
	if err := <-held; err == nil {
		t.Error("the call ended well, though it was held")
	}
}

func TestReloadNamesWhatNeedsANewStart(t *testing.T) {
	t.Parallel()
	url := echo(t)
	s := start(t, url, "max_header: 1KiB")
	write(t, s.file, url, "max_header: 1MiB\nlog_each_second: 3\nlog: debug")
	s.reload <- syscall.SIGHUP
	line := s.log.waitFor(t, "reload: some changes need a restart, the others are applied")
	if got := fmt.Sprint(line["changed"]); got != "[log_each_second max_header]" {
		t.Errorf("changed is %s", got)
	}
	s.log.waitFor(t, "reloaded")
	write(t, s.file, url, "max_header: 1KiB\nlog: debug")
	s.reload <- syscall.SIGHUP
	for msg := ""; msg != "reloaded"; {
		var l struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(<-s.log), &l); err != nil || l.Level == "WARN" && !strings.Contains(l.Msg, "removed or renamed") {
			t.Errorf("the value in force: says %q, %v", l.Msg, err)
		}
		msg = l.Msg
	}
}

// keyPair writes a certificate with a serial number.
func keyPair(t testing.TB, dir string, serial int64) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// serial returns the serial number of the certificate in force.
func (s *sidecar) serial(t testing.TB) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", s.address(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

// A failed reload changes neither upstreams nor the certificate. A reload without tls keeps the certificate.
func TestReloadAndCertificates(t *testing.T) {
	t.Parallel()
	url, dir := echo(t), t.TempDir()
	keyPair(t, dir, 1)
	secure := fmt.Sprintf("tls: {cert: %q, key: %q}", filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	s := start(t, url, secure)
	check := func(when string, want int64) {
		t.Helper()
		if got := s.serial(t); got != want {
			t.Errorf("%s: certificate %d, want %d", when, got, want)
		}
	}
	check("at first", 1)
	keyPair(t, dir, 2)
	write(t, s.file, url, secure+"\nnonsense: 1")
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reload: nothing was changed")
	check("after a bad file", 1)
	write(t, s.file, url, "")
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reloaded")
	check("after tls was left out", 1)
	write(t, s.file, url, secure)
	s.reload <- syscall.SIGHUP
	s.log.waitFor(t, "reloaded")
	check("after a reload", 2)
}

func TestForeignHostsAreRefusedByTheAdminListener(t *testing.T) {
	t.Parallel()
	s := start(t, echo(t), "")
	for host, want := range map[string]int{"evil.example": 421, "evil.example:8081": 421, "": 200, "localhost": 200} {
		r, err := http.NewRequest(http.MethodPost, "http://"+s.admin.Addr().String()+"/v1/breaker", strings.NewReader(`{"upstream":"up","do":"close"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host // "" means the host of the URL
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("host %q: %s, want %d", host, resp.Status, want)
		}
	}
}

func TestComplaintsOfTheServerAreLogged(t *testing.T) {
	t.Parallel()
	log := newJournal()
	w := complaints{slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	for text, level := range map[string]string{
		"http: TLS handshake error from 127.0.0.1:1: EOF\n":                     "DEBUG",
		"http2: server connection error from 127.0.0.1:1: PROTOCOL_ERROR\n":     "DEBUG",
		"http2: server: error reading preface from client 127.0.0.1:1: EOF\n":   "DEBUG",
		"timeout waiting for SETTINGS frames from 127.0.0.1:1\n":                "DEBUG",
		"http: panic serving 127.0.0.1:1: oh\ngoroutine 7 [running]:\nmain()\n": "WARN",
		"http2: panic serving 127.0.0.1:1: oh\ngoroutine 7 [running]:\n":        "WARN",
		"http: Accept error: too many open files; retrying in 5ms\n":            "WARN",
	} {
		if n, err := io.WriteString(w, text); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
		if l := log.waitFor(t, "http server"); l["level"] != level || l["error"] != strings.TrimSpace(text) {
			t.Errorf("%q: says %v", text, l)
		}
	}
	_, _ = io.WriteString(w, "http: panic serving: https://me:canary@example.com/"+strings.Repeat(" x", 10_000))
	if text := <-log; strings.Contains(text, "canary") || len(text) > longestComplaint+200 {
		t.Errorf("%d bytes: %.200s", len(text), text)
	}
}

// The servers of both listeners write their messages to the log.
func TestServersComplainIntoTheLog(t *testing.T) {
	t.Parallel()
	s := start(t, echo(t), "")
	for _, h := range []*http.Server{s.front(t.Context()), s.back()} {
		h.ErrorLog.Print("http: panic serving: oh")
		s.log.waitFor(t, "http server")
	}
}
