//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/practice"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// A member is a weir process of a fleet.
type member struct {
	cmd    *exec.Cmd
	listen string
	decide string
	admin  string
	ended  chan error
	log    *tail
}

// tail stores a process's log.
type tail struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *tail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.WriteString(line)
}

func (l *tail) has(msg string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), msg)
}

// enlist starts a weir with an upstream and a store.
func enlist(t *testing.T, upstream, store string) *member {
	t.Helper()
	return enlistWith(t, fmt.Sprintf("{url: %q, limits: {all: 100/s}}", upstream), fmt.Sprintf("redis: %q", store))
}

// enlistWith is enlist for the fields of an upstream and of a store.
func enlistWith(t *testing.T, fields, store string) *member {
	t.Helper()
	return enlistFile(t, fmt.Sprintf("store: {%s}\ndecide: {listen: 127.0.0.1:0}\nupstreams:\n  up: %s\n", store, fields))
}

// enlistFile is enlist for a complete file without its listeners.
func enlistFile(t *testing.T, text string) *member {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	text = "listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n" + text
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &member{cmd: exec.Command(os.Args[0], "serve", "-config", file), ended: make(chan error, 1), log: &tail{}}
	m.cmd.Env = append(os.Environ(), asWeir+"=1")
	out, err := m.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.cmd.Process.Kill(); <-m.ended })
	lines := bufio.NewReader(out)
	var serving struct{ Listen, Decide, Admin string }
	for serving.Listen == "" { // warnings about the file come first
		line, err := lines.ReadString('\n')
		if err == nil {
			err = json.Unmarshal([]byte(line), &serving)
		}
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
	}
	m.listen, m.decide, m.admin = serving.Listen, serving.Decide, serving.Admin
	go func() {
		for line, err := lines.ReadString('\n'); err == nil; line, err = lines.ReadString('\n') {
			m.log.add(line)
		}
		m.ended <- m.cmd.Wait()
	}()
	return m
}

// holdsPart reports whether a member has its part of the limits, with which it can continue without the store.
func (m *member) holdsPart() bool {
	resp, err := http.Get("http://" + m.admin + "/v1/status")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	var r status.Report
	err = json.NewDecoder(resp.Body).Decode(&r)
	for _, p := range r.Fleet.Parts {
		if p.Upstream == "up" {
			return err == nil && p.Part > 0
		}
	}
	return false
}

// load sends requests through a member until stop, and counts the responses.
func (m *member) load(wg *sync.WaitGroup, stop <-chan struct{}, callers int, good, bad *atomic.Int64) {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: callers}}
	for range callers {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				resp, err := client.Get("http://" + m.listen + "/up/")
				if err != nil {
					bad.Add(1)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					good.Add(1)
				}
			}
		})
	}
}

// strictUpstream allows the limit plus the units of half a second. It judges by arrival, and on a busy machine requests that
// were sent one after the other can arrive together. Two processes with the full limit each would exceed it by far.
func strictUpstream(t *testing.T) (*practice.Upstream, string) {
	u := practice.New(practice.Settings{Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 150}}, time.Now())
	s := httptest.NewServer(u)
	t.Cleanup(s.Close)
	return u, s.URL
}

// Two processes with half of the load each stay within one limit. An upstream that counts as strictly refuses nothing.
func TestTwoProcessesShareOneLimit(t *testing.T) {
	t.Parallel()
	redis := servers.Redis(t)
	initStore(t, redis.URL())
	up, url := strictUpstream(t)
	a, b := enlist(t, url, redis.URL()), enlist(t, url, redis.URL())
	var wg sync.WaitGroup
	var good, bad atomic.Int64
	stop := make(chan struct{})
	begin := time.Now()
	a.load(&wg, stop, 16, &good, &bad)
	b.load(&wg, stop, 16, &good, &bad)
	time.AfterFunc(4*time.Second, func() { close(stop) })
	wg.Wait()
	took := time.Since(begin).Seconds()
	total := up.Total()
	t.Logf("%d good, %d refused upstream in %.1fs", good.Load(), total.Refused, took)
	if total.Refused > 0 || bad.Load() > 0 {
		t.Errorf("the upstream refused %d, %d calls broke", total.Refused, bad.Load())
	}
	if n, most := total.Arrived(), 100+100*(took+0.1); float64(n) > most {
		t.Errorf("%d arrived in %.1fs, and %.0f may at most", n, took, most)
	}
	if good.Load() == 0 { // the number also depends on the machine
		t.Error("no call was let go")
	}
}

// The store, its connections, and a member fail one after the other, and calls continue.
func TestCallsGoOnWhateverEnds(t *testing.T) {
	t.Parallel()
	redis := servers.Redis(t)
	initStore(t, redis.URL())
	_, url := strictUpstream(t)
	a, b := enlist(t, url, redis.URL()), enlist(t, url, redis.URL())
	var wg sync.WaitGroup
	var good, bad, other atomic.Int64
	stop := make(chan struct{})
	a.load(&wg, stop, 8, &good, &bad)
	b.load(&wg, stop, 8, &other, new(atomic.Int64))
	goesOn := func(what string) {
		t.Helper()
		before := good.Load()
		eventually(t, what, func() bool { return good.Load() > before+20 })
	}
	goesOn("at first")
	for range 5 {
		_, _ = redis.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		goesOn("without its connections")
	}
	redis.FlushScripts()
	goesOn("without its scripts")
	eventually(t, "a part of the limits", func() bool { return a.holdsPart() && b.holdsPart() })
	redis.Kill()
	goesOn("without a store")
	eventually(t, "fallback activated", func() bool { return a.log.has("fallback activated") })
	redis.Restart()
	eventually(t, "fallback resumed", func() bool { return a.log.has("fallback resumed") })
	goesOn("with a store again")
	if err := b.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	goesOn("without the other member")
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	close(stop)
	wg.Wait()
	if err := <-a.ended; err != nil {
		t.Errorf("told to stop, it ended with %v", err)
	}
	a.ended <- nil
}

func TestStoreInitMakesLimitsStartFull(t *testing.T) {
	t.Parallel()
	redis := servers.Redis(t)
	_, url := strictUpstream(t)
	if said := initStore(t, redis.URL()); !strings.Contains(said, "is ready") {
		t.Errorf("says %q", said)
	}
	m := enlist(t, url, redis.URL())
	begin := time.Now()
	for range 60 {
		resp, err := http.Post("http://"+m.decide+"/v1/acquire", "application/json", strings.NewReader(`{"upstream":"up"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK && time.Since(begin) < 100*time.Millisecond {
			t.Fatalf("status %d of a limit that is full", resp.StatusCode)
		}
	}
}
