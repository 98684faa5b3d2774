package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// The file for every preset passes weir check. weir serve also accepts it with every value of the preset uncommented.
func TestInitWritesFilesThatPassCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	check := func(path string) {
		t.Helper()
		var out bytes.Buffer
		if err := run(t.Context(), world{args: []string{"check", path}, out: &out, err: &out, env: noEnv}); err != nil {
			t.Errorf("weir check %s: %v\n%s", path, err, &out)
		}
	}
	for _, name := range config.Presets() {
		path := name + ".yaml"
		if out := printed(t, "init", name, "--config", path); !strings.Contains(out, "weir serve "+path) {
			t.Errorf("weir init %s prints %q, want the next step", name, out)
		}
		check(path)
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := config.PresetText(name)
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "#") {
				if !bytes.Contains(written, []byte("\n    # "+line+"\n")) {
					t.Errorf("%s has no %q", path, line)
				}
				written = bytes.Replace(written, []byte("\n    # "+line+"\n"), []byte("\n    "+line+"\n"), 1)
			}
		}
		if err := os.WriteFile("all.yaml", written, 0o600); err != nil {
			t.Fatal(err)
		}
		// weir check rejects fields that only presets may set, but weir serve accepts them.
		if _, err := config.Load("all.yaml", noEnv); err != nil {
			t.Errorf("%s with all values uncommented: %v\n%s", name, err, written)
		}
	}
	printed(t, "init")
	check("weir.yaml")
}

func TestInitKeepsExistingFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	var complaint bytes.Buffer
	code := cli.Exit("weir", run(t.Context(), world{args: []string{"init", "s3", "--config", path}, out: io.Discard, err: &complaint, env: noEnv}), &complaint)
	if text, err := os.ReadFile(path); code != 1 || err != nil || string(text) != "mine" || !strings.Contains(complaint.String(), "already exists") {
		t.Errorf("exit status %d, %s: the file contains %q, %v", code, &complaint, text, err)
	}
	complaint.Reset()
	gone := filepath.Join(t.TempDir(), "gone", "weir.yaml")
	if code := cli.Exit("weir", run(t.Context(), world{args: []string{"init", "--config", gone}, out: io.Discard, err: &complaint, env: noEnv}), &complaint); code != 1 || !strings.Contains(complaint.String(), "no such file or directory") {
		t.Errorf("exit status %d, %s", code, &complaint)
	}
}

func TestPresetsAreListedAndShown(t *testing.T) {
	list := printed(t, "presets")
	asJSON := printed(t, "presets", "--json")
	for _, name := range config.Presets() {
		text, _ := config.PresetText(name)
		if summary := presetSummary(text); len(summary) < 5 || len(summary) > 80 || !strings.HasSuffix(summary, ".") || !strings.Contains(list, "\n"+name+" ") && !strings.HasPrefix(list, name+" ") || !strings.Contains(asJSON, summary) {
			t.Errorf("%s: summary %q is too long, or not in\n%s%s", name, summary, list, asJSON)
		}
		if got := printed(t, "presets", name); got != text {
			t.Errorf("weir presets %s prints %q", name, got)
		}
		if got := printed(t, "presets", name, "--json"); !strings.Contains(got, `"yaml":"# `) {
			t.Errorf("weir presets %s --json prints %q", name, got)
		}
	}
	for _, args := range []string{"presets opena", "init opena"} {
		var complaint bytes.Buffer
		if err := run(t.Context(), world{args: strings.Fields(args), out: io.Discard, err: &complaint, env: noEnv}); cli.Exit("weir", err, io.Discard) != 2 || !strings.Contains(complaint.String(), "did you mean openai") {
			t.Errorf("weir %s: %v, %s", args, err, &complaint)
		}
	}
}
