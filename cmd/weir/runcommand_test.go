//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/playedhosts"
)

// A runResult is the output of a weir run and its exit status.
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

// runtimeDir returns a directory with a short name, as sockets need.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "weirtest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Without a file, a call to GitHub that a secondary limit refuses is repeated after the wait in GitHub's response. The summary
// reports it.
func TestRunWaitsForSecondaryLimitOfGitHub(t *testing.T) {
	t.Parallel()
	needs(t, "curl")
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

// Without a file, the hosts of all presets are limited, including hosts with a wildcard, and each call reaches the host that the
// command called.
func TestRunChoosesPresetsByHost(t *testing.T) {
	t.Parallel()
	needs(t, "curl")
	hosts := playedhosts.Start(t, http.HandlerFunc(ok))
	urls := []string{
		"https://gitlab.com/api/v4/projects", "https://api.cloudflare.com/client/v4/zones", "https://api.stripe.com/v1/charges", "https://shop.myshopify.com/admin/api/2026-10/orders.json",
		"https://slack.com/api/users.list", "https://openrouter.ai/api/v1/models", "https://mine.openai.azure.com/openai/v1/models", "https://b.s3.eu-central-1.amazonaws.com/k",
	}
	args := []string{"--verbose", "--", "curl", "-sS"}
	var want strings.Builder
	for _, u := range urls {
		args = append(args, u)
		want.WriteString(strings.TrimPrefix(strings.Replace(u, "/", "", 1), "https:/")) // host and path
	}
	got := weirRun(t, hosts.Env(), args...)
	if got.out != want.String() || got.status != 0 || !strings.HasPrefix(got.err, "weir: 8 calls") {
		t.Errorf("got %+v, want %q", got, want.String())
	}
}

// ok responds with the requested URL.
func ok(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s%s", r.Host, r.URL) }

// runConfig writes a configuration with an upstream for api.example.test.
func runConfig(t *testing.T, upstream string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.yaml")
	text := "upstreams: {example: {url: \"https://api.example.test\", " + upstream + "}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func needs(t *testing.T, commands ...string) {
	t.Helper()
	for _, name := range commands {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v: make deps installs it", err)
		}
	}
}

func TestRunEndsWithStatusOfCommand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		command []string
		want    int
		says    string
	}{
		{[]string{"true"}, 0, "weir: saw no call: true made none"},
		{[]string{"sh", "-c", "exit 7"}, 7, "weir: saw no call: "},
		{[]string{"sh", "-c", "kill -TERM $$"}, 128 + 15, "weir: saw no call: "},
		{[]string{"/nowhere/nothing"}, 127, "was not found"},
		{[]string{file}, 126, "cannot be executed"},
	} {
		got := weirRun(t, os.Environ(), append([]string{"--"}, c.command...)...)
		if got.status != c.want || !strings.Contains(got.err, c.says) {
			t.Errorf("%q: got status %d and %q, want %d and %q", c.command, got.status, got.err, c.want, c.says)
		}
	}
}

// A signal for weir reaches the command, and the directory of a run is gone after it.
func TestRunPassesSignalsOn(t *testing.T) {
	t.Parallel()
	dir := runtimeDir(t)
	c := exec.Command(os.Args[0], "run", "--", "sh", "-c", `trap 'echo trapped; exit 3' TERM; echo ready; while :; do sleep 0.05; done`)
	c.Env = append(os.Environ(), asWeir+"=1", "XDG_RUNTIME_DIR="+dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the command printed %q", lines.Text())
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !lines.Scan() || lines.Text() != "trapped" {
		t.Errorf("the command printed %q, want trapped", lines.Text())
	}
	_ = c.Wait() // its status is checked elsewhere
	if got := c.ProcessState.ExitCode(); got != 3 {
		t.Errorf("status %d, want 3", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "weir", "run-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A killed run leaves no private key on the disk, and the next run removes its files.
func TestKilledRunLeavesNoKey(t *testing.T) {
	t.Parallel()
	dir := runtimeDir(t)
	start := func(command string) (*exec.Cmd, *bufio.Scanner) {
		c := exec.Command(os.Args[0], "run", "--quiet", "--", "sh", "-c", command)
		c.Env = append(os.Environ(), asWeir+"=1", "XDG_RUNTIME_DIR="+dir)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c, bufio.NewScanner(out)
	}
	c, lines := start(`echo $$; exec sleep 60`)
	if !lines.Scan() {
		t.Fatal("the command printed nothing")
	}
	child, err := strconv.Atoi(lines.Text())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(child, syscall.SIGKILL) }()
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	dead := filepath.Join(dir, "weir", fmt.Sprintf("run-%d", c.Process.Pid))
	certificates := 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("PRIVATE")) {
			t.Errorf("%s contains a private key", path)
		}
		certificates += bytes.Count(text, []byte("BEGIN CERTIFICATE"))
		return err
	})
	if err != nil || certificates == 0 {
		t.Fatalf("found %d certificates: %v", certificates, err)
	}
	c, _ = start("true")
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the killed run: %v, want that it does not exist", err)
	}
}

// A client is a command that calls api.example.test, and a text that it prints.
type client struct {
	name    string
	command []string
	want    string
}

const address = "https://api.example.test/x1"

func TestRunReadsCallsOfClients(t *testing.T) {
	t.Parallel()
	runReadsCalls(t, []client{
		{"curl, HTTP/2", []string{"curl", "-sS", "--http2", address}, "api.example.test/x1"},
		{"curl, a kept connection", []string{"curl", "-sS", "--http1.1", address, address, "-w", "%{num_connects}"}, "api.example.test/x11api.example.test/x10"},
		{"urllib", []string{"python3", "-c", "import urllib.request as u; print(u.urlopen('" + address + "').read().decode())"}, "api.example.test/x1"},
		{"requests", []string{"python3", "-c", "import requests; print(requests.get('" + address + "').text)"}, "api.example.test/x1"},
		{"git", []string{"git", "ls-remote", "https://api.example.test/g.git"}, "\tHEAD"},
		{"npm", []string{"npm", "view", "left-pad", "version", "--registry=https://api.example.test/", "--fetch-retries=0"}, "1.3.0"},
		{"aws", []string{"aws", "s3", "ls", "--endpoint-url", "https://api.example.test"}, "b1"},
	})
}

// runReadsCalls runs clients. Each gets a throttle that the client does not see.
func runReadsCalls(t *testing.T, clients []client) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			needs(t, c.command[0])
			var calls, throttled atomic.Int64
			hosts := playedhosts.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if calls.Add(1) == 1 {
					throttled.Add(1)
					w.Header().Set("Retry-After", "0")
					w.WriteHeader(http.StatusTooManyRequests)
					return
				}
				playRegistries(w, r)
			}))
			env := append(hosts.Env(), "HOME="+t.TempDir(), "AWS_ACCESS_KEY_ID=AKIAX", "AWS_SECRET_ACCESS_KEY=x", "AWS_DEFAULT_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true", "GIT_TERMINAL_PROMPT=0",
				"GH_ENTERPRISE_TOKEN=x", "RUSTC_BOOTSTRAP=1", "PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1")
			got := weirRun(t, env, append([]string{"-v", "--config", runConfig(t, "limits: {calls: 1000/s}"), "--"}, c.command...)...)
			if !strings.Contains(got.out, c.want) || got.status != 0 {
				t.Errorf("got %+v, want %q", got, c.want)
			}
			if throttled.Load() != 1 || !strings.Contains(got.err, "0 of 1 throttle reached "+c.command[0]) {
				t.Errorf("after %d throttles, summary %q", throttled.Load(), got.err)
			}
		})
	}
}

// playRegistries responds like git, npm, PyPI, crates.io and S3. Other requests get their URL.
func playRegistries(w http.ResponseWriter, r *http.Request) {
	kind, text := "application/json", ""
	switch {
	case strings.HasPrefix(r.URL.Path, "/g.git/info/refs"):
		kind, text = "application/x-git-upload-pack-advertisement", "001e# service=git-upload-pack\n0000"+"0032aabbccddeeff00112233445566778899aabbccdd HEAD\n0000"
	case r.URL.Path == "/left-pad":
		text = `{"name":"left-pad","dist-tags":{"latest":"1.3.0"},"versions":{"1.3.0":{"name":"left-pad","version":"1.3.0"}}}`
	case r.URL.Path == "/simple/left-pad/":
		kind, text = "text/html", `<a href="left-pad-1.3.0.tar.gz">left-pad-1.3.0.tar.gz</a>`
	case r.URL.Path == "/config.json":
		text = `{"dl":"https://api.example.test/dl","api":"https://api.example.test"}`
	case r.URL.Path == "/api/v1/crates":
		text = `{"crates":[{"name":"left-pad","max_version":"1.3.0","description":"pads"}],"meta":{"total":1}}`
	case strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256"):
		kind, text = "application/xml", `<?xml version="1.0"?><ListAllMyBucketsResult><Owner><ID>1</ID></Owner><Buckets><Bucket><Name>b1</Name><CreationDate>2026-01-01T00:00:00.000Z</CreationDate></Bucket></Buckets></ListAllMyBucketsResult>`
	default:
		ok(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	fmt.Fprint(w, text)
}

// Hosts without an upstream are tunneled: the command sees their certificate, and weir counts no call.
func TestRunTunnelsOtherHosts(t *testing.T) {
	t.Parallel()
	needs(t, "curl")
	hosts := playedhosts.Start(t, http.HandlerFunc(ok))
	got := weirRun(t, hosts.Env(), "-v", "--", "curl", "-sS", "-v", "https://other.example.test/y")
	if got.out != "other.example.test/y" || !strings.Contains(got.err, "CN=played hosts") || strings.Contains(got.err, "CN=weir run") ||
		!strings.Contains(got.err, "weir: 0 calls; 1 host tunneled\n") {
		t.Errorf("got %+v", got)
	}
}

// weir trusts only certificates that the user trusts.
func TestRunVerifiesCertificateOfUpstream(t *testing.T) {
	t.Parallel()
	needs(t, "curl")
	hosts, others := playedhosts.Start(t, http.HandlerFunc(ok)), playedhosts.Start(t, http.HandlerFunc(ok))
	env := append(hosts.Env(), "SSL_CERT_FILE="+others.CA)
	got := weirRun(t, env, "--config", runConfig(t, "retry: off"), "--", "curl", "-sS", "-w", " %{http_code}", "https://api.example.test/")
	if !strings.HasSuffix(got.out, " 502") {
		t.Errorf("got %+v, want status 502", got)
	}
}

// Two simultaneous runs share a limit, also with a later run.
func TestRunsShareLimit(t *testing.T) {
	t.Parallel()
	needs(t, "curl")
	var calls atomic.Int64
	hosts := playedhosts.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { calls.Add(1); ok(w, r) }))
	config := runConfig(t, "max_wait: off, limits: {calls: {rate: 10/h, shape: rolling}}")
	env := append(hosts.Env(), asWeir+"=1", "XDG_RUNTIME_DIR="+runtimeDir(t))
	some := func() {
		c := exec.Command(os.Args[0], "run", "--quiet", "--config", config, "--", "curl", "-s", "https://api.example.test/[1-7]")
		c.Env = env
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	var wg sync.WaitGroup
	wg.Go(some)
	wg.Go(some)
	wg.Wait()
	some()
	if got := calls.Load(); got > 10 || got < 8 { // a run returns its leased units when it ends
		t.Errorf("%d calls, want 10", got)
	}
}

// A weir run in a weir run uses the outer one, and weir why explains its calls while it runs.
func TestNestedRunAndWhy(t *testing.T) {
	t.Parallel()
	needs(t, "curl")
	hosts := playedhosts.Start(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	script := `"$0" run -- curl -s -o /dev/null -H "X-Correlation-Id: asked-for" https://api.example.test/; "$0" why asked-for`
	got := weirRun(t, hosts.Env(), "--config", runConfig(t, "retry: off"), "--", "sh", "-c", script, os.Args[0])
	if got.status != 0 || !strings.Contains(got.out, "asked-for") || !strings.Contains(got.out, "throttled") {
		t.Errorf("why: got %+v", got)
	}
	if n := strings.Count(got.err, "weir: "); n != 1 || !strings.Contains(got.err, "1 of 1 throttle reached sh") {
		t.Errorf("summary %q, want one", got.err)
	}
}

// Clients without proxy support reach upstreams by their base URL.
func TestRunSetsBaseURLs(t *testing.T) {
	t.Parallel()
	needs(t, "curl")
	hosts := playedhosts.Start(t, http.HandlerFunc(ok))
	got := weirRun(t, hosts.Env(), "--quiet", "--", "sh", "-c", `curl -sS --noproxy '*' $ANTHROPIC_BASE_URL/v1/models; echo; curl -sS --noproxy '*' $OPENAI_BASE_URL/models`)
	if got.out != "api.anthropic.com/v1/models\napi.openai.com/v1/models" {
		t.Errorf("got %+v", got)
	}
}
