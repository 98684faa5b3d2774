// Package served runs the weir binary for end-to-end tests.
package served

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Patience bounds every wait for a process.
const Patience = 30 * time.Second

// program is the weir binary, built once for all tests of a package.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "weir")
	if err != nil {
		return "", err
	}
	built = dir
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "weir"), "github.com/seed1158cd35/weir/cmd/weir")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build weir: %w: %s", err, out)
	}
	return filepath.Join(dir, "weir"), nil
})

var built string

// Clean removes the binary. Call it when all tests of the package have run.
func Clean() {
	if built != "" {
		_ = os.RemoveAll(built)
	}
}

// Binary returns the path of the weir binary.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A Process is a running weir serve.
type Process struct {
	File  string // its configuration
	Cmd   *exec.Cmd
	Serve Line // its log line at the start

	*log
	done chan error
}

// Start runs weir serve with a configuration, in the test's environment with additional NAME=VALUE, and waits until it serves.
func Start(t testing.TB, yaml string, env ...string) *Process {
	t.Helper()
	return StartArgs(t, yaml, "FILE", []string{"serve", "-config", "FILE"}, env...)
}

// StartArgs is Start with the arguments of a manifest. file is the configuration's path in them.
func StartArgs(t testing.TB, yaml, file string, args []string, env ...string) *Process {
	t.Helper()
	p := launch(t, yaml, file, args, env)
	p.Serve = p.WaitFor("serving")
	return p
}

// Launch is Start without the wait, for a weir that may fail to serve.
func Launch(t testing.TB, yaml string, env ...string) *Process {
	t.Helper()
	return launch(t, yaml, "FILE", []string{"serve", "-config", "FILE"}, env)
}

func launch(t testing.TB, yaml, file string, args, env []string) *Process {
	t.Helper()
	p := &Process{log: newLog(t), File: filepath.Join(t.TempDir(), "weir.yaml"), done: make(chan error, 1)}
	p.Write(yaml)
	args = slices.Clone(args)
	for i, a := range args {
		args[i] = strings.ReplaceAll(a, file, p.File)
	}
	p.Cmd = exec.Command(Binary(t), args...)
	p.Cmd.Env = append(os.Environ(), env...)
	out, err := p.Cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.listen(out)
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill()
		<-p.done
	})
	return p
}

func (p *Process) listen(out io.Reader) {
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		_, _ = p.log.Write(s.Bytes())
	}
	p.done <- p.Cmd.Wait()
	close(p.done)
}

// Write replaces the configuration file.
func (p *Process) Write(yaml string) {
	p.t.Helper()
	if err := os.WriteFile(p.File, []byte(yaml), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// Reload replaces the configuration and waits for a log line.
func (p *Process) Reload(yaml, says string) Line {
	p.t.Helper()
	p.Write(yaml)
	p.Signal(syscall.SIGHUP)
	return p.WaitFor(says)
}

// Exited waits until the process ends.
func (p *Process) Exited() error {
	p.t.Helper()
	select {
	case err := <-p.done:
		return err
	case <-time.After(Patience):
		p.t.Fatalf("weir did not end within %v", Patience)
		return nil
	}
}

// Init initializes the stores of a file with weir. A busy machine may not connect in time, so Init retries, which changes
// nothing that exists.
func Init(t testing.TB, env []string, file string) {
	t.Helper()
	for end := time.Now().Add(Patience); ; {
		out, code := Say(t, env, "store", "init", "-config", file)
		if code == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("store init: %s", out)
		}
	}
}

// Say runs a command of weir to its end, in the test's environment with additional NAME=VALUE.
func Say(t testing.TB, env []string, args ...string) (out string, code int) {
	t.Helper()
	var b bytes.Buffer
	c := exec.Command(Binary(t), args...)
	c.Stdout, c.Stderr, c.Env = &b, &b, append(os.Environ(), env...)
	_ = c.Run()
	return b.String(), c.ProcessState.ExitCode()
}
