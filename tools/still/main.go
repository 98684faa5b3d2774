//go:build linux

// Still runs tests on a machine that stalls now and then, like a virtual machine. Each test, with every process that
// it has started, is stopped for longer than most timeouts, and continues. Tests that fail depend on speed, or show
// that weir does.
//
//	go run ./still [-race] [-for 20m] [-stop 1.2s] [-every 8s] [-at-once 6] [-skip RE] [-run RE] DIR [PACKAGE...]
//
// Packages belong to the module in DIR, and default to "./...". The output of failures is printed, and at the end how
// often each package ran and failed.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A config configures how tests run.
type config struct {
	race        bool
	lasts       time.Duration
	stop, every time.Duration // duration of a stop, and average interval between two stops
	atOnce      int
	skip, only  string
	alone       time.Duration // longest run of one package
}

// A suite is the test binary of a package.
type suite struct {
	name, dir, binary string
	runs, failed      int
}

func main() {
	var c config
	flag.BoolVar(&c.race, "race", false, "with the race detector")
	flag.DurationVar(&c.lasts, "for", 20*time.Minute, "how long to go on")
	flag.DurationVar(&c.stop, "stop", 1200*time.Millisecond, "how long a stop is; 0 for none")
	flag.DurationVar(&c.every, "every", 8*time.Second, "how far apart stops are, on average")
	flag.IntVar(&c.atOnce, "at-once", 6, "how many packages run at once")
	flag.StringVar(&c.skip, "skip", "", "tests to leave out")
	flag.StringVar(&c.only, "run", "", "tests to run")
	flag.DurationVar(&c.alone, "alone", 10*time.Minute, "how long one run of a package may take")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.main(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "still:", err)
		os.Exit(1)
	}
}

func (c *config) main(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("name the folder of a module")
	}
	if c.every <= 0 || c.atOnce <= 0 {
		return fmt.Errorf("-every %v, -at-once %d: must be more than 0", c.every, c.atOnce)
	}
	to, err := os.MkdirTemp("", "still")
	if err != nil {
		return err
	}
	defer os.RemoveAll(to)
	all, err := c.build(ctx, to, args[0], args[1:])
	if err != nil {
		return err
	}
	return c.runAll(ctx, all)
}

// build builds the test binaries of a module.
func (c *config) build(ctx context.Context, to, dir string, packages []string) (all []*suite, err error) {
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	list := exec.CommandContext(ctx, "go", append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}"}, packages...)...)
	list.Dir, list.Stderr = dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		name, folder, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		s := &suite{name: name, dir: folder, binary: filepath.Join(to, fmt.Sprintf("%d.test", len(all)))}
		args := []string{"test", "-vet=off", "-c", "-o", s.binary, name}
		if c.race {
			args = slices.Insert(args, 1, "-race")
		}
		made := exec.CommandContext(ctx, "go", args...)
		if made.Dir = dir; c.race {
			made.Env = append(os.Environ(), "CGO_ENABLED=1")
		}
		if said, err := made.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", name, err, said)
		}
		all = append(all, s)
		fmt.Fprintf(os.Stderr, "built %d: %s\n", len(all), name)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no package of %s has tests: %s", dir, strings.Join(packages, " "))
	}
	return all, nil
}

// runAll runs all packages one after the other, repeatedly, until the time is up.
func (c *config) runAll(ctx context.Context, all []*suite) error {
	end := time.Now().Add(c.lasts)
	var mu sync.Mutex
	next, failed := 0, 0
	var workers sync.WaitGroup
	for range c.atOnce {
		workers.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				mu.Lock()
				s := all[next%len(all)]
				next++
				mu.Unlock()
				begin := time.Now()
				said, err := c.run(ctx, s)
				fmt.Fprintf(os.Stderr, "%v to go: %s ran for %v\n", max(0, time.Until(end)).Round(time.Second), s.name, time.Since(begin).Round(time.Second))
				mu.Lock()
				if s.runs++; err != nil && ctx.Err() == nil {
					s.failed++
					failed++
					fmt.Printf("==== %s: %v\n%s\n", s.name, err, said)
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	slices.SortStableFunc(all, func(a, b *suite) int { return cmp.Compare(b.failed, a.failed) })
	for _, s := range all {
		fmt.Printf("%d of %d failed: %s\n", s.failed, s.runs, s.name)
	}
	if failed > 0 {
		return fmt.Errorf("%d runs failed", failed)
	}
	return ctx.Err()
}

// run runs the tests of a package once, and stops them now and then.
func (c *config) run(ctx context.Context, s *suite) ([]byte, error) {
	args := []string{"-test.timeout=" + c.alone.String()}
	if c.skip != "" {
		args = append(args, "-test.skip="+c.skip)
	}
	if c.only != "" {
		args = append(args, "-test.run="+c.only)
	}
	var said bytes.Buffer
	cmd := exec.Command(s.binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = s.dir, &said, &said, time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	for {
		pause := time.NewTimer(time.Duration((0.2 + 1.6*rand.Float64()) * float64(c.every)))
		select {
		case err := <-over:
			pause.Stop()
			return said.Bytes(), err
		case <-ctx.Done():
			pause.Stop()
			signals(family(cmd.Process.Pid), syscall.SIGKILL)
			return said.Bytes(), <-over
		case <-pause.C:
			c.stands(cmd.Process.Pid)
		}
	}
}

// stands stops a process and its family for a while, except processes that a test has stopped itself.
func (c *config) stands(pid int) {
	if c.stop <= 0 {
		return
	}
	var stopped []process
	for _, p := range family(pid) {
		if p.state != 'T' && p.state != 't' {
			stopped = append(stopped, p)
		}
	}
	signals(stopped, syscall.SIGSTOP)
	time.Sleep(c.stop)
	signals(stopped, syscall.SIGCONT)
}
