package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// said is what a command writes.
func said(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), world{args: args, out: &out, err: io.Discard, env: noEnv}); err != nil {
		t.Fatalf("weir %v: %v", args, err)
	}
	return out.String()
}

// Every command declares its flags before it does anything, so that help, completions and the manual can be made of them.
func TestCommandsDeclareTheirFlagsFirst(t *testing.T) {
	all := sheets(t.Context(), noEnv)
	for _, s := range all {
		if got := len(s.flags) > 0; got != !slices.Contains([]string{"completion", "man", "version", "export alertmanager", "export grafana"}, s.words) {
			t.Errorf("weir %s: has flags: %v", s.words, got)
		}
	}
	for _, c := range commands() {
		if !slices.ContainsFunc(all, func(s sheet) bool { return s.words == c.name || strings.HasPrefix(s.words, c.name+" ") }) && c.says != nil {
			t.Errorf("weir %s is described nowhere", c.name)
		}
	}
}

// Every flag of every command is in the manual, which man reads without complaint.
func TestTheManual(t *testing.T) {
	text := said(t, "man")
	for _, s := range sheets(context.Background(), noEnv) {
		for _, f := range s.flags {
			if want := "\n.BR \\-" + roff(f.Name) + " "; !strings.Contains(text, want) {
				t.Errorf("it has no %q", want)
			}
		}
		if len(s.flags) > 0 && !strings.Contains(text, "\n.SS "+roff("weir "+s.words)+"\n") {
			t.Errorf("it has no section for weir %s", s.words)
		}
	}
	for line := range strings.Lines(text) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" || strings.HasPrefix(word, "'") || strings.HasPrefix(word, ".") && !slices.Contains([]string{".TH", ".SH", ".SS", ".TP", ".B", ".BR", ".I"}, word) {
			t.Errorf("man does not know the line %q", line)
		}
	}
	if got := roff(".a-b \\ \"c\"\n'd"); got != `\&.a\-b \e \(dqc\(dq 'd` {
		t.Errorf("a text becomes %s", got)
	}
}

// bash completes what may follow, whatever flags stand before it.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "weir.bash")
	if err := os.WriteFile(script, []byte(said(t, "completion", "bash")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"st"}, "status store static"},
		{[]string{"dead", ""}, "list show redrive drop"},
		{[]string{"dead", "re"}, "redrive"},
		{[]string{"dead", "list", "-old"}, "-older -oldest"},
		{[]string{"pause", "-limit", "x", "-o"}, "-operation"},
		{[]string{"serve", "-"}, "-config"},
		{[]string{"export", "g"}, "grafana"},
		{[]string{"completion", ""}, "bash zsh fish"},
		{[]string{"serve", "weir.y"}, ""}, // files
		{[]string{"nonsense", ""}, ""},
	} {
		line := fmt.Sprintf("source %s; COMP_WORDS=(weir '%s'); COMP_CWORD=%d; _weir; echo \"${COMPREPLY[*]}\"", script, strings.Join(c.words, "' '"), len(c.words))
		out, err := exec.CommandContext(t.Context(), bash, "-uc", line).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%v: %q, %v; want %q", c.words, got, err, c.want)
		}
	}
	if zsh := said(t, "completion", "zsh"); !strings.HasPrefix(zsh, "#compdef weir\n") || !strings.HasSuffix(zsh, said(t, "completion", "bash")) {
		t.Error("zsh is not given what bash is")
	}
}

// Lines for fish are whole, whatever stands in a description.
func TestFishCompletes(t *testing.T) {
	text := said(t, "completion", "fish")
	for line := range strings.Lines(text) {
		if quotes := strings.Count(strings.ReplaceAll(line, `\'`, ""), "'"); !strings.HasPrefix(line, "complete -c weir -n ") || quotes%2 != 0 {
			t.Errorf("the line %q", line)
		}
	}
	for _, want := range []string{"-f -a pause -d '", "from dead; and __fish_seen_subcommand_from list' -o oldest -d '", "__fish_seen_subcommand_from serve' -o config -r -d '"} {
		if !strings.Contains(text, want) {
			t.Errorf("it has no %s", want)
		}
	}
}
