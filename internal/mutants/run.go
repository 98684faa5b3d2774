package main

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// A Verdict is the result of a mutant.
type Verdict string

const (
	Caught   Verdict = "caught"
	Hung     Verdict = "caught, by the time limit"
	Survived Verdict = "SURVIVED"
	Stale    Verdict = "DOES NOT APPLY" // its text is missing, or the changed file does not compile
)

// A Result is a mutant's verdict with details.
type Result struct {
	Mutant  *Mutant
	Verdict Verdict
	Detail  string
	Took    time.Duration
}

func (r *Result) ok() bool { return r.Verdict == Caught || r.Verdict == Hung }

// A runner applies mutants to the tree at root.
type runner struct {
	root    string
	timeout time.Duration // for the tests of one package
	args    []string      // package and flags that replace the tests of each mutant; nil if each has its own
	seen    *record       // mutants caught by earlier runs; nil to ignore these
}

// try applies a mutant and runs the tests that must detect it. In each named package one must fail.
func (r *runner) try(ctx context.Context, m *Mutant) Result {
	start := time.Now()
	result := func(v Verdict, detail string) Result { return Result{m, v, detail, time.Since(start)} }
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return result(Stale, err.Error())
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(r.root, dir)
	if err != nil {
		return result(Stale, err.Error())
	}
	worst, detail := Caught, ""
	for _, pkg := range m.Test {
		out, err := r.test(ctx, overlay, pkg, "-failfast", "-count=1", "-run", m.Run)
		v, what := judge(out, err)
		if detail = what; v == Survived || v == Stale {
			return result(v, pkg+": "+what)
		}
		if v == Hung {
			worst = Hung
		}
	}
	return result(worst, detail)
}

// test returns the output of a package's tests, with an optional overlay, which also applies to programs that the tests build.
// It returns an error if they fail.
func (r *runner) test(ctx context.Context, overlay, pkg string, args ...string) (string, error) {
	args = append([]string{"test", "-vet=off", "-timeout", r.timeout.String(), pkg}, args...)
	if r.args != nil {
		args = append(args, r.args[1:]...)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.root
	if overlay != "" {
		cmd.Env = append(os.Environ(), strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var (
	firstFailure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	firstPanic   = regexp.MustCompile(`(?m)^(panic|fatal error): (.*)$`)
)

// judge interprets the output of go test.
func judge(out string, err error) (Verdict, string) {
	switch {
	case err == nil && strings.Contains(out, "no tests to run"), err == nil && strings.Contains(out, "[no test files]"):
		return Survived, "there is no such test"
	case err == nil:
		return Survived, "all tests pass"
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return Stale, "does not compile:\n" + out
	case strings.Contains(out, "panic: test timed out"):
		return Hung, ""
	}
	if f := firstFailure.FindStringSubmatch(out); f != nil {
		return Caught, f[1]
	}
	if f := firstPanic.FindStringSubmatch(out); f != nil {
		return Caught, f[2]
	}
	return Stale, "the tests did not run:\n" + out
}
