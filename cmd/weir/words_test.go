package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// weir store init names the store that could not be initialized and what to check, without secrets.
func TestStoreInitSaysWhatIsWrong(t *testing.T) {
	locked := servers.Redis(t, "--requirepass", "correct")
	for _, c := range []struct {
		url   string
		wants []string
	}{
		{locked.URL() + "\", password_env: \"PASSWORD", []string{"store redis at " + locked.URL() + " cannot be prepared: ", "WRONGPASS", "does not accept the user or the password"}},
		{locked.URL(), []string{"store redis at " + locked.URL() + " cannot be prepared: ", "NOAUTH", "requires a password"}},
		{"redis://127.0.0.1:1", []string{"store redis at redis://127.0.0.1:1 cannot be prepared: ", "connection refused"}},
	} {
		file := filepath.Join(t.TempDir(), "weir.yaml")
		text := fmt.Sprintf("store: {redis: \"%s\"}\nupstreams: {up: {url: \"http://127.0.0.1:1\", limits: {all: 5/s}}}\n", c.url)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		status := cli.Exit("weir", run(t.Context(), world{args: []string{"store", "init", "-config", file}, out: &out, err: &out, env: func(name string) (string, bool) { return "secret", name == "PASSWORD" }}), &out)
		for _, want := range c.wants {
			if status == 0 || !strings.Contains(out.String(), want) {
				t.Errorf("ends with %d and says %q, want %q", status, out.String(), want)
			}
		}
		if strings.Contains(out.String(), "secret") || strings.Contains(out.String(), "callers") {
			t.Errorf("says %q", out.String())
		}
	}
}

// The error of an invalid duration shows a valid one.
func TestLengthsSayWhatTheyLookLike(t *testing.T) {
	for _, args := range []string{"pause up -for 5"} {
		var out bytes.Buffer
		err := run(t.Context(), world{args: strings.Fields(args), out: io.Discard, err: &out, env: noEnv})
		if cli.Exit("weir", err, io.Discard) != 2 || !strings.Contains(out.String(), `--for "5"`) || !strings.Contains(out.String(), "want a number with a unit, such as 30s, 5m or 1h30m") {
			t.Errorf("%s: %v, %s", args, err, out.String())
		}
	}
}

// weir check uses singular and plural correctly.
func TestCheckCounts(t *testing.T) {
	for n, want := range map[int]string{1: "good: 1 upstream, listening", 2: "good: 2 upstreams, listening"} {
		file := filepath.Join(t.TempDir(), "weir.yaml")
		text := "upstreams:\n"
		for i := range n {
			text += fmt.Sprintf("  up%d: {url: \"http://127.0.0.1:1\"}\n", i)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := run(t.Context(), world{args: []string{"check", file}, out: &out, err: &out, env: noEnv}); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v, %s", err, out.String())
		}
	}
}
