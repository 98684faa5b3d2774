//go:build unix

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/status"
)

// patience bounds every wait for a process.
const patience = 30 * time.Second

// program is the weir binary, built once for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		return "", err
	}
	leftovers = append(leftovers, dir)
	path := filepath.Join(dir, "weir")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/weir").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("build weir: %w: %s", err, out)
	}
	return path, err
})

// binary is the path of the weir binary.
func binary(t testing.TB) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A process is a running weir serve.
type process struct {
	t     testing.TB
	file  string
	cmd   *exec.Cmd
	lines chan line // of its log
	done  chan error
	serve line
}

// A line is one line of the log.
type line struct{ Msg, Level, Error, Listen, Admin, Decide string }

// start runs weir serve with a configuration and waits until it serves.
func start(t testing.TB, yaml string) *process {
	t.Helper()
	w := &process{t: t, file: filepath.Join(t.TempDir(), "weir.yaml"), lines: make(chan line, 10_000), done: make(chan error, 1)}
	w.write(yaml)
	w.cmd = exec.Command(binary(t), "serve", "-config", w.file)
	out, err := w.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go w.listen(out)
	t.Cleanup(func() {
		_ = w.cmd.Process.Kill()
		<-w.done
	})
	w.serve = w.waitFor("serving")
	return w
}

func (w *process) listen(out io.Reader) {
	s := bufio.NewScanner(out)
	for s.Scan() {
		var l line
		if json.Unmarshal(s.Bytes(), &l) != nil {
			l.Msg = s.Text()
		}
		select {
		case w.lines <- l:
		default: // nobody waits for so many
		}
	}
	w.done <- w.cmd.Wait()
	close(w.done)
}

func (w *process) write(yaml string) {
	w.t.Helper()
	if err := os.WriteFile(w.file, []byte(yaml), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *process) signal(s os.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil {
		w.t.Fatal(err)
	}
}

// waitFor waits for a line of the log.
func (w *process) waitFor(msg string) line {
	w.t.Helper()
	late := time.After(patience)
	for {
		select {
		case l := <-w.lines:
			if l.Msg == msg {
				return l
			}
		case <-late:
			w.t.Fatalf("weir did not say %q within %v", msg, patience)
		}
	}
}

// reload has weir read another configuration, and waits until it says so.
func (w *process) reload(yaml, says string) line {
	w.t.Helper()
	w.write(yaml)
	w.signal(syscall.SIGHUP)
	return w.waitFor(says)
}

// rule is a limit as weir status shows it.
func (w *process) rule(limit string) string {
	w.t.Helper()
	out, err := exec.Command(binary(w.t), "status", "-json", "-admin", w.serve.Admin).Output()
	if err != nil {
		w.t.Fatalf("weir status: %v", err)
	}
	var r status.Report
	if err := json.Unmarshal(out, &r); err != nil {
		w.t.Fatalf("weir status: %v in %s", err, out)
	}
	for _, l := range r.Upstreams[0].Limits {
		if l.Name == limit {
			return l.Rule
		}
	}
	return ""
}

// exited waits for the process to end by itself.
func (w *process) exited() error {
	w.t.Helper()
	select {
	case err := <-w.done:
		return err
	case <-time.After(patience):
		w.t.Fatalf("weir did not end within %v", patience)
		return nil
	}
}

// yaml is a configuration for a store.
func (s *store) yaml(put string) string {
	return strings.NewReplacer("URL", s.url, "PUT", put).Replace(`
listen: 127.0.0.1:0
admin: 127.0.0.1:0
drain: 20s
upstreams:
  s3:
    url: URL
    preset: s3
    routes: [{path: /}]
    limits:
      put: PUT
`)
}

// say runs a command of weir to its end.
func say(t testing.TB, args ...string) (out string, code int) {
	t.Helper()
	var b bytes.Buffer
	c := exec.Command(binary(t), args...)
	c.Stdout, c.Stderr = &b, &b
	_ = c.Run()
	return b.String(), c.ProcessState.ExitCode()
}
