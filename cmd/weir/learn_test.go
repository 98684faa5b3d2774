package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// learning runs weir learn with an input.
func learning(t *testing.T, in string, args ...string) (out, says string, code int) {
	t.Helper()
	var written, said bytes.Buffer
	err := run(t.Context(), world{args: append([]string{"learn"}, args...), in: strings.NewReader(in), out: &written, err: &said, env: noEnv})
	code = cli.Exit("weir", err, &said)
	return written.String(), said.String(), code
}

// attempts returns the log of half an hour at 20 calls a second. The upstream allows 10.
func attempts() string {
	var b strings.Builder
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 36000 {
		class := "ok"
		if i%2 == 1 && i > 40 {
			class = "throttled"
		}
		fmt.Fprintf(&b, `{"time":%q,"msg":"attempt","upstream":"up","operation":"default","class":%q,"took":0.01}`+"\n", at.Add(time.Duration(i)*50*time.Millisecond).Format(time.RFC3339Nano), class)
	}
	return b.String()
}

// patch accepts the output of weir learn. A second run proposes no change.
func TestLearnWritesAPatch(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	file := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, file, "http://127.0.0.1:1", "# nothing else changes")
	log := attempts()
	out, says, code := learning(t, log, "-config", file, "-")
	if code != 0 || !strings.Contains(out, "# up: throttles began at 10 requests per second") || !strings.Contains(says, "36000 attempts") {
		t.Fatalf("code %d\n%s\n%s", code, out, says)
	}
	cmd := exec.Command("patch", "--fuzz=0", file)
	cmd.Stdin = strings.NewReader(out)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, text, out)
	}
	now, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(now), "limits: {calls: 10/s burst 21}") || !strings.Contains(string(now), "# nothing else changes") {
		t.Errorf("%v\n%s", err, now)
	}
	if out, _, code := learning(t, log, "-config", file, "-"); code != 0 || !strings.Contains(out, "# nothing to change") || strings.Contains(out, "@@") {
		t.Errorf("a second time: code %d\n%s", code, out)
	}
	if out, _, code := learning(t, log, "-config", file, "-json", "-"); code != 0 || !strings.Contains(out, `"Amount":10,"Per":1000000000`) {
		t.Errorf("as JSON: code %d\n%s", code, out)
	}
}

func TestLearnSaysWhatItWants(t *testing.T) {
	file := filepath.Join(t.TempDir(), "weir.yaml")
	write(t, file, "http://127.0.0.1:1", "")
	for _, c := range []struct {
		in   string
		args []string
		code int
		want string
	}{
		{"", nil, 2, "want one source"},
		{"", []string{"-prometheus", "http://127.0.0.1:1", "-"}, 2, "want one source"},
		{"", []string{"-cloudwatch", "s4"}, 2, "unknown metrics"},
		{"", []string{"-cloudwatch", "s3", "-region", "eu-west-1"}, 2, "-upstream"},
		{"", []string{"-dimension", "x"}, 2, "NAME=VALUE"},
		{"", []string{"-prometheus", "http://127.0.0.1:1"}, 1, "connection refused"},
		{"", []string{filepath.Join(filepath.Dir(file), "none.log")}, 1, "no such file"},
		{"", []string{"-"}, 0, "not enough data"},
		{`{"time":"2026-03-01T12:00:02Z","msg":"throttled","upstream":"up"}`, []string{"-"}, 0, "set log: attempts"},
		{"garbage\n", []string{"-"}, 0, "1 lines were skipped"},
	} {
		out, says, code := learning(t, c.in, append([]string{"-config", file}, c.args...)...)
		if code != c.code || !strings.Contains(out+says, c.want) {
			t.Errorf("weir learn %v: code %d\n%s\n%s, want %d and %s", c.args, code, out, says, c.code, c.want)
		}
	}
}
