package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// Another program repeatedly overwrites every key of weir's store. Calls are still decided, and the log reports it in a few
// lines.
func TestHostileKeysDoNotFloodTheLog(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	r := servers.Redis(t)
	w := start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: %q}\nupstreams:\n  up: {url: %q, max_wait: off, limits: {all: 1000/s}}\n", r.URL(), up.URL))
	answered := make(map[int]int)
	call := func() {
		resp, err := http.Get("http://" + w.Serve.Listen + "/up/x")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		answered[resp.StatusCode]++
	}
	const mark = "{weir:up}"
	kept := func() bool {
		kind, err := r.Do("TYPE", mark)
		return err == nil && strings.Contains(kind, "string")
	}
	until(t, "weir keeps something there", func() bool { call(); return kept() })
	for range 8 {
		for key := range strings.FieldsSeq(r.Keys()) {
			_, _ = r.Do("DEL", key)
			_, _ = r.Do("LPUSH", key, "x")
		}
		until(t, "weir has its own there again", func() bool { call(); return kept() })
	}
	lines := 0
	for line := range strings.Lines(w.Log()) {
		if !strings.Contains(line, `"msg":"refused"`) { // each refused call has a line
			lines++
		}
	}
	if lines > 20 {
		t.Errorf("%d lines for %v: %.2000s", lines, answered, w.Log())
	}
	for status := range answered {
		if status != 200 && status != 429 && status != 503 {
			t.Errorf("answers: %v", answered)
		}
	}
	t.Logf("%v, %d lines beside refusals", answered, lines)
}

// The process reaches its limit of open files. It continues, and serves again as soon as the limit allows.
func TestWhenFilesRunOut(t *testing.T) {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	w := start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n  up: {url: %q}\n", up.URL))
	call := func() int {
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + w.Serve.Listen + "/up/x")
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if status := call(); status != http.StatusOK {
		t.Fatalf("at first: %d", status)
	}
	files(t, w.Cmd.Process.Pid, 24)
	var all []net.Conn
	for range 60 {
		if c, err := net.DialTimeout("tcp", w.Serve.Listen, time.Second); err == nil {
			all = append(all, c)
		}
	}
	beside := call()
	for _, c := range all {
		_ = c.Close()
	}
	t.Logf("while there are no files: %d", beside)
	files(t, w.Cmd.Process.Pid, 1024)
	until(t, "it serves again", func() bool { return call() == http.StatusOK })
}

// files sets the limit of open files of a process.
func files(t *testing.T, pid int, most uint64) {
	t.Helper()
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: most, Max: 1024}, nil); err != nil {
		t.Fatal(err)
	}
}
