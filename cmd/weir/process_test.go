//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

// asWeir makes a test binary run the program.
const asWeir = "WEIR_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asWeir) != "" {
		main()
	}
	watchdog.Run(m)
}

// After the reader of its log closes the pipe, weir does not end or fail calls, although writing sends SIGPIPE.
func TestLogWhoseReaderLeft(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	defer upstream.Close()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, file, upstream.URL, "log: debug")
	c := exec.Command(os.Args[0], "serve", "-config", file)
	c.Env = append(os.Environ(), asWeir+"=1")
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	var serving struct{ Listen string }
	line, err := bufio.NewReader(out).ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &serving)
	}
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	_ = out.Close()
	client := &http.Client{Timeout: patience}
	for range 10 {
		resp, err := client.Post("http://"+serving.Listen+"/up/", "text/plain", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("ended with %v", err)
	}
}

// weir serve accepts the file as an argument, and addresses that replace the file's.
func TestServeTakesFileAndAddresses(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(file, []byte("listen: 192.0.2.1:1\nadmin: 192.0.2.1:2\nopen: true\nadmin_open: true\nupstreams: {up: {url: \"http://127.0.0.1:1\"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		admin bool
	}{
		{[]string{"serve", file, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, true},
		{[]string{"serve", "-listen", "127.0.0.1:0", "-admin", "off", "-config", file}, false},
	} {
		weir := exec.Command(os.Args[0], c.args...)
		weir.Env = append(os.Environ(), asWeir+"=1")
		log, err := weir.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := weir.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = weir.Process.Kill() }()
		lines := bufio.NewReader(log)
		line, err := lines.ReadString('\n')
		var serving struct{ Listen, Admin string }
		if err := errors.Join(err, json.Unmarshal([]byte(line), &serving)); err != nil {
			t.Fatalf("%v: %q: %v", c.args, line, err)
		}
		if !strings.HasPrefix(serving.Listen, "127.0.0.1:") || strings.HasPrefix(serving.Admin, "127.0.0.1:") != c.admin {
			t.Errorf("%v: serves at %+v", c.args, serving)
		}
		if err := weir.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_, _ = lines.WriteTo(io.Discard)
		if err := weir.Wait(); err != nil {
			t.Errorf("%v: ended with %v", c.args, err)
		}
	}
}
