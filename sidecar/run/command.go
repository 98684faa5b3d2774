package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// command starts the command, forwards signals to it, and waits until it has ended.
func (r *running) command(ctx context.Context) (status int, err error) {
	env, err := r.childEnv()
	if err != nil {
		return statusFailed, err
	}
	c := exec.Command(r.Command[0], r.Command[1:]...)
	c.Env, c.Stdin, c.Stdout, c.Stderr = env, r.In, r.Out, r.Err
	c.WaitDelay = time.Second // for output of processes that it left running, if Out is not a file
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, heard...)
	defer signal.Stop(signals)
	if err := c.Start(); err != nil {
		return startStatus(err), startError(r.Command[0], err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // the process state reports how it ended
	}()
	done := ctx.Done()
	for {
		select {
		case s := <-signals:
			if passes(s) {
				_ = c.Process.Signal(s)
			}
		case <-done:
			done = nil
			_ = c.Process.Kill()
		case <-ended:
			return statusOf(c.ProcessState), nil
		}
	}
}

func startStatus(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return statusNotFound
	}
	return statusNotExecutable
}

func startError(name string, err error) error {
	if startStatus(err) == statusNotFound {
		return fmt.Errorf("command %q was not found", name)
	}
	return fmt.Errorf("command %q cannot be executed: %w", name, err)
}

// inherits reports whether the command uses the run around this one.
func inherits(o *Options) bool {
	r := running{Options: *o}
	names, nested := r.around()
	if !nested || o.Config != "" || len(o.Presets)+len(o.Through) > 0 || o.Budget != "" {
		return false
	}
	return o.Run == "" || o.Run == names[len(names)-1]
}

// namesFile contains the names of this run and the runs around it, the outermost first.
const namesFile = "names"

// around returns the names of the runs around this one, the outermost first.
func (r *running) around() (names []string, nested bool) {
	dir, nested := r.lookup(Variable)
	if !nested || checkPrivate(dir) != nil {
		return nil, false
	}
	text, err := os.ReadFile(filepath.Join(dir, namesFile))
	return strings.Split(string(text), "\n"), err == nil
}

// nest chooses the key of the run: its name, unless a run around it has that name. That one is charged for the same calls.
func (r *running) nest() error {
	names, nested := r.around()
	r.key, r.nested = r.Run, nested
	if depth := strings.Count("\n"+strings.Join(names, "\n\n")+"\n", "\n"+r.Run+"\n"); depth > 0 {
		r.key = fmt.Sprintf("%s (nested %d)", r.Run, depth)
	}
	names = append(names, r.Run)
	return os.WriteFile(filepath.Join(r.dir, namesFile), []byte(strings.Join(names, "\n")), 0o600)
}
