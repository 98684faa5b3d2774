//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/sidecar/deliveries"
)

// A post is a weir process that delivers to an upstream of the test.
type post struct {
	*testing.T
	dir    string
	status atomic.Int64 // status of the upstream's responses
	came   atomic.Int64
	weir   *exec.Cmd
	listen string
	admin  string
}

func newPost(t *testing.T) *post {
	t.Helper()
	p := &post{T: t, dir: t.TempDir()}
	p.status.Store(404)
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		p.came.Add(1)
		w.WriteHeader(int(p.status.Load()))
		fmt.Fprint(w, "no such \x1b[31mtopic")
	}))
	t.Cleanup(up.Close)
	text := fmt.Sprintf(`listen: 127.0.0.1:0
admin: 127.0.0.1:0
deliveries: {file: letters.db}
upstreams: {box: {url: %q, routes: [{path: /, deliver: always}]}}
`, up.URL)
	if err := os.WriteFile(filepath.Join(p.dir, "weir.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.start()
	return p
}

// command returns the program as users run it.
func (p *post) command(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Dir = p.dir
	c.Env = append(os.Environ(), asWeir+"=1")
	return c
}

func (p *post) start() {
	p.Helper()
	p.weir = p.command("serve")
	out, err := p.weir.StderrPipe()
	if err != nil {
		p.Fatal(err)
	}
	if err := p.weir.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = p.weir.Process.Kill() })
	var serving struct{ Listen, Admin string }
	log := bufio.NewReader(out)
	line, err := log.ReadString('\n')
	if err == nil {
		err = json.Unmarshal([]byte(line), &serving)
	}
	if err != nil {
		p.Fatalf("%q: %v", line, err)
	}
	p.listen, p.admin = serving.Listen, serving.Admin
	go func() { _, _ = log.WriteTo(&bytes.Buffer{}) }()
}

func (p *post) stop() {
	p.Helper()
	if err := errors.Join(p.weir.Process.Signal(syscall.SIGTERM), p.weir.Wait()); err != nil {
		p.Fatal(err)
	}
}

// hand submits requests and waits for their end.
func (p *post) hand(n int) (ids []string) {
	p.Helper()
	for range n {
		r, err := http.NewRequest("POST", "http://"+p.listen+"/topic?day=monday", strings.NewReader("x"))
		if err != nil {
			p.Fatal(err)
		}
		r.Header.Set("Prefer", "wait=30")
		r.Header.Set("X-Correlation-Id", "of-this-call")
		r.Header.Set("Title", "done")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			p.Fatal(err)
		}
		var got deliveries.Receipt
		err = json.NewDecoder(resp.Body).Decode(&got)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			p.Fatalf("%s: %v", resp.Status, err)
		}
		ids = append(ids, got.ID)
	}
	return ids
}

// dead runs weir dead.
func (p *post) dead(args ...string) (out, complaint string, code int) {
	p.Helper()
	if !strings.Contains(strings.Join(args, " "), "-file") {
		args = append(args, "-admin", p.admin)
	}
	c := p.command(append([]string{"dead"}, args...)...)
	var o, e bytes.Buffer
	c.Stdout, c.Stderr = &o, &e
	var exit *exec.ExitError
	if err := c.Run(); err != nil && !errors.As(err, &exit) {
		p.Fatal(err)
	}
	return o.String(), e.String(), c.ProcessState.ExitCode()
}

func (p *post) want(says string, code int, args ...string) string {
	p.Helper()
	out, complaint, is := p.dead(args...)
	if is != code || !strings.Contains(out+complaint, says) {
		p.Errorf("weir dead %s: ends with %d\n%s%s\nwant %d and %q", strings.Join(args, " "), is, out, complaint, code, says)
	}
	return out
}

// Users list dead letters, view one, redrive some at a rate, and drop others.
func TestDeadLettersByHand(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	ids := p.hand(8)
	if out := p.want("rejected", 0, "list", "-upstream", "box", "-older", "0s"); strings.Count(out, "\n") != 9 || !strings.Contains(out, "the upstream rejects it: 404") {
		t.Errorf("listed\n%s", out)
	}
	if out := p.want("ID", 0, "list", "-reason", "expired"); strings.Count(out, "\n") != 1 {
		t.Errorf("listed\n%s", out)
	}
	if out := p.want("", 0, "list", "-json", "-limit", "0"); strings.Count(out, `{"id":`) != 8 {
		t.Errorf("listed\n%s", out)
	}
	p.want("there are more", 0, "list", "-limit", "3")
	if out := p.want("ID", 0, "list", "-oldest", "-limit", "3"); !strings.HasPrefix(strings.SplitN(out, "\n", 2)[1], ids[0]) {
		t.Errorf("listed\n%s", out)
	}
	for _, says := range []string{"correlation id   of-this-call", "attempt 1", "404 rejected", `answered no such \x1b[31mtopic`, "POST /topic?day=monday (1 bytes)", "header           Title: done", "body             x"} {
		p.want(says, 0, "show", ids[0])
	}
	p.want(`"history"`, 0, "show", "-json", ids[0])
	p.want("unknown delivery", 1, "show", "nobody")

	p.status.Store(200)
	p.want("Stripe after 24 h", 0, "redrive", ids[0])
	eventually(t, "it is delivered", func() bool { out, _, _ := p.dead("show", ids[0]); return strings.Contains(out, "completed") })
	p.want("it was already delivered", 1, "redrive", ids[0], ids[1])
	began := time.Now()
	out, progress, code := p.dead("redrive", "-reason", "rejected", "-rate", "3/s")
	if long := time.Since(began); code != 0 || !strings.HasPrefix(out, "6 redriven\n") || long < 5*time.Second/3 || !strings.Contains(progress, "redriven so far") {
		t.Errorf("within %v: %d %s%s", long, code, out, progress)
	}
	eventually(t, "all are delivered", func() bool { return p.came.Load() == 16 })

	p.status.Store(404)
	more := p.hand(5)
	p.want("1 dropped", 0, "drop", more[0])
	p.want("2 dropped", 0, "drop", "-upstream", "box", "-most", "2")
	p.want("another weir has the file open", 1, "list", "-file", "letters.db")
	p.stop()
	for _, beside := range []string{".lock", ".reserve"} {
		if err := os.Remove(filepath.Join(p.dir, "letters.db"+beside)); err != nil {
			t.Fatal(err)
		}
	}
	p.want(more[4], 0, "list", "-file", "letters.db")
	p.want("attempt 1", 0, "show", "-file", "letters.db", more[4])
	if all, err := filepath.Glob(filepath.Join(p.dir, "letters*")); err != nil || len(all) != 1 {
		t.Errorf("to look made %v, %v", all, err)
	}
	p.want("0 dropped: no dead letter matches", 0, "drop", "-file", "letters.db", "-reason", "expired")
	p.want("1 redriven", 0, "redrive", "-file", "letters.db", more[3])
	p.want("1 dropped", 0, "drop", "-file", "letters.db", "-all")
	if out := p.want("ID", 0, "list", "-file", "letters.db"); strings.Count(out, "\n") != 1 {
		t.Errorf("listed\n%s", out)
	}
	p.status.Store(200)
	came := p.came.Load()
	p.start()
	eventually(t, "the next weir sends what was redriven", func() bool { return p.came.Load() == came+1 })
}

func TestOrdersAboutDeadLettersThatCannotBe(t *testing.T) {
	t.Parallel()
	p := &post{T: t, dir: t.TempDir(), admin: "127.0.0.1:1"}
	if err := os.WriteFile(filepath.Join(p.dir, "diary.txt"), []byte(strings.Repeat("dear diary ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, says := range map[string]string{
		"":                               "unknown flag --admin",
		"lst":                            `unknown command "lst"; did you mean list?`,
		"show":                           "ID is missing",
		"show a b":                       `unexpected argument "b"`,
		"redrive":                        "or --all",
		"drop":                           "or --all",
		"redrive -all a":                 "by ID or by flags",
		"redrive -all -upstream a":       "--all cannot be combined",
		"redrive -all -rate fast":        "such as 10/s",
		"redrive -all -rate 0/s":         "such as 10/s",
		"drop -all -most -1":             "must not be negative",
		"list a":                         `unexpected argument "a"`,
		"list -file diary.txt":           "not a file of deliveries",
		"list -file nowhere.db":          "no such file",
		"list -file a.db -admin 1.2.3.4": "use only one of",
		"list -older 1h":                 "is weir serve running",
		"redrive a -older 1h":            "by ID or by flags",
		"drop -all -token-ended":         "unknown flag --token-ended",
		"drop -all":                      "is weir serve running",
	} {
		if out, complaint, code := p.dead(strings.Fields(args)...); code == 0 || !strings.Contains(complaint, says) || out != "" {
			t.Errorf("weir dead %s: %d %s%s, want %q", args, code, out, complaint, says)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "nowhere.db")); err == nil {
		t.Error("a file was made")
	}
}
