//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/playedhosts"
)

// A runResult is what a run of weir run printed, and its exit status.
type runResult struct {
	out, err string
	status   int
}

// weirRun runs weir run with arguments and an environment.
func weirRun(t *testing.T, env []string, args ...string) runResult {
	t.Helper()
	c := exec.Command(os.Args[0], append([]string{"run"}, args...)...)
	c.Env = append(env, asWeir+"=1", "XDG_RUNTIME_DIR="+runtimeDir(t))
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || !exit.Exited()) {
		t.Fatalf("%v: %s", err, &errs)
	}
	return runResult{out.String(), errs.String(), c.ProcessState.ExitCode()}
}

// runtimeDir returns a directory with a name that is short enough for sockets.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weirtest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// As a new user would: without a file, a call to GitHub that a secondary limit refuses is repeated after the wait that GitHub asked
// for, and the summary says so.
func TestRunWaitsForSecondaryLimitOfGitHub(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	for _, version := range []string{"--http1.1", "--http2"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			hosts := playedhosts.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) == 1 {
					w.Header().Set("Retry-After", "1")
					w.WriteHeader(http.StatusForbidden)
					fmt.Fprint(w, `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`)
					return
				}
				fmt.Fprintf(w, "%s %s", r.Host, r.URL)
			}))
			got := weirRun(t, hosts.Env(), "--", "curl", "-sS", version, "-w", " %{http_code} %{http_version}", "https://api.github.com/repos/golang/go?x=1")
			want := "api.github.com /repos/golang/go?x=1 200 " + map[string]string{"--http1.1": "1.1", "--http2": "2"}[version]
			if got.out != want || got.status != 0 || calls.Load() != 2 {
				t.Errorf("got %+v after %d calls, want %q", got, calls.Load(), want)
			}
			if !strings.HasPrefix(got.err, "weir: 1 call, 1 waited ") || !strings.HasSuffix(got.err, ", 0 of 1 throttle reached curl\n") {
				t.Errorf("summary %q", got.err)
			}
		})
	}
}
