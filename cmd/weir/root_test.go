package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed1158cd35/weir/internal/cli"
)

// printed returns the output of a command.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), world{args: args, out: &out, err: io.Discard, env: noEnv}); err != nil {
		t.Fatalf("weir %v: %v", args, err)
	}
	return out.String()
}

// everyCommand returns all visible commands, including weir itself.
func everyCommand(c *cobra.Command) (all []*cobra.Command) {
	all = append(all, c)
	for _, sub := range c.Commands() {
		if !sub.Hidden {
			all = append(all, everyCommand(sub)...)
		}
	}
	return all
}

// words splits a line as a shell does, without redirections and pipes.
func words(line string) (all []string) {
	line, _, _ = strings.Cut(line, " > ")
	line, _, _ = strings.Cut(line, " | ")
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			all = append(all, part)
			continue
		}
		all = append(all, strings.Fields(part)...)
	}
	return all
}

func TestEveryCommandHasHelpAndExampleThatParses(t *testing.T) {
	for _, c := range everyCommand(newRoot(world{env: noEnv})) {
		switch name := c.CommandPath(); {
		case c.Short == "" || strings.HasSuffix(c.Short, ".") || len(c.Short) > 80:
			t.Errorf("%s: short text %q", name, c.Short)
		case !strings.HasSuffix(c.Long, "."):
			t.Errorf("%s: long text %q", name, c.Long)
		case c.Example == "":
			t.Errorf("%s has no example", name)
		}
		for line := range strings.Lines(c.Example) {
			root := newRoot(world{env: noEnv})
			args := words(line)
			if len(args) < 1 || args[0] != "weir" {
				t.Errorf("%s: the example %q does not start with weir", c.CommandPath(), line)
				continue
			}
			found, rest, err := root.Find(doubleDashes(root, args[1:]))
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err != nil || found.HasSubCommands() {
				t.Errorf("%s: the example %q does not parse: %v", c.CommandPath(), line, err)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			value, usage := pflag.UnquoteUsage(f)
			if boolean := f.Value.Type() == "bool"; boolean != (value == "") || !boolean && value != strings.ToUpper(value) {
				t.Errorf("%s --%s takes %q: want a placeholder in capitals, and none for a boolean", c.CommandPath(), f.Name, value)
			}
			if usage == "" || strings.HasSuffix(usage, ".") {
				t.Errorf("%s --%s: usage %q", c.CommandPath(), f.Name, usage)
			}
		})
	}
}

func TestHelpShowsOneUsageLine(t *testing.T) {
	for _, args := range []string{"help", "dead --help"} {
		if text := printed(t, strings.Fields(args)...); strings.Count(text, " COMMAND\n") != 1 || strings.Contains(text, "[command]") {
			t.Errorf("weir %s:\n%s", args, text)
		}
	}
}

func TestWrongCommandLinesExitWith2AndSuggest(t *testing.T) {
	for args, want := range map[string]string{
		"statsu":                       `weir: unknown command "statsu"; did you mean status or static?`,
		"dead lst":                     `weir dead: unknown command "lst"; did you mean list?`,
		"export graphana":              "did you mean grafana?",
		"store int":                    "did you mean init?",
		"breaker opne up":              "did you mean open?",
		"help statsu":                  "did you mean status or static?",
		"help dead lst":                "did you mean list?",
		"nonsense":                     `unknown command "nonsense"`,
		"nonsense --help":              `unknown command "nonsense"`,
		"dead lst -h":                  "did you mean list?",
		"status --jsn":                 "weir status: unknown flag --jsn; did you mean --json?",
		"status -jsn":                  "unknown flag --jsn; did you mean --json?",
		"pause up --limt x":            "did you mean --limit?",
		"--verson":                     "did you mean --version?",
		"serve --listn :1":             "did you mean --listen?",
		"status --zzzzzzzz":            "unknown flag --zzzzzzzz\n",
		"status up":                    `unexpected argument "up"`,
		"serve a b":                    `unexpected argument "b"`,
		"serve a --config b":           "FILE and --config both name a file",
		"pause":                        "weir pause: UPSTREAM is missing\nusage: weir pause UPSTREAM [flags]\n\"weir pause --help\" explains it.\n",
		"pause up --for":               "--for needs a value: --for DURATION",
		"pause up --for 5":             `--for "5": want a number with a unit, such as 30s, 5m or 1h30m`,
		"dead list --limit many":       `--limit "many": want a whole number`,
		"status --json=perhaps":        `--json "perhaps": want true or false`,
		"completion":                   "SHELL is missing",
		"completion cmd":               "want bash, zsh or fish",
		"top --sort worse":             "want one of worst, name",
		"trace x":                      "weir trace: ",
		"demo":                         "weir-demo",
		"chat-sim -x y":                "weir-demo chat",
		"dead list --file a --admin b": "use only one of --admin, --file and --config",
	} {
		var out, complaint bytes.Buffer
		err := run(t.Context(), world{args: strings.Fields(args), out: &out, err: &complaint, env: noEnv})
		if code := cli.Exit("weir", err, &complaint); code != 2 || !strings.Contains(complaint.String(), want) || out.Len() > 0 {
			t.Errorf("weir %s: exit status %d, %s%s, want 2 and %q", args, code, &out, &complaint, want)
		}
	}
	for _, args := range []string{"", "dead", "export", "store", "static", "breaker"} {
		var out, complaint bytes.Buffer
		err := run(t.Context(), world{args: strings.Fields(args), out: &out, err: &complaint, env: noEnv})
		if !errors.Is(err, cli.ErrUsage) || !strings.Contains(complaint.String(), "Examples:") || out.Len() > 0 {
			t.Errorf("weir %s: %v, %s%s, want the help on standard error", args, err, &out, &complaint)
		}
	}
}

func TestHelpIsTheSameInEveryForm(t *testing.T) {
	for _, forms := range [][]string{
		{"help", "-h", "-help", "--help"},
		{"help dead redrive", "dead redrive -h", "dead redrive --help", "dead redrive -help x --json=x"},
	} {
		want := printed(t, strings.Fields(forms[0])...)
		for _, form := range forms[1:3] {
			if got := printed(t, strings.Fields(form)...); got != want || !strings.Contains(got, "Usage:\n  weir") {
				t.Errorf("weir %s: got\n%s\nwant\n%s", form, got, want)
			}
		}
	}
	for _, form := range []string{"version", "-version", "--version"} {
		if got := printed(t, form); !strings.HasPrefix(got, "weir ") {
			t.Errorf("weir %s: %q", form, got)
		}
	}
}

func TestFlagsWithOneDashAreRead(t *testing.T) {
	for args, want := range map[string]string{
		"serve -config weir.yaml":           "serve --config weir.yaml",
		"serve -config=a -listen :1":        "serve --config=a --listen :1",
		"serve --config -file":              "serve --config -file", // a value
		"pause up -for -5s -here":           "pause up --for -5s --here",
		"dead redrive -all -rate 1/s":       "dead redrive --all --rate 1/s",
		"status -h":                         "status -h",
		"learn - -json":                     "learn - --json",
		"static test -- -json":              "static test -- -json",
		"why -5":                            "why -5",
		"status -unknown x":                 "status --unknown x",
		"__complete pause -limit x -here -": "__complete pause --limit x --here -",
	} {
		if got := strings.Join(doubleDashes(newRoot(world{env: noEnv}), strings.Fields(args)), " "); got != want {
			t.Errorf("%s: got %s, want %s", args, got, want)
		}
	}
}

// man parses the page without warnings. It has every command and flag.
func TestManualHasEveryFlag(t *testing.T) {
	text := printed(t, "man")
	root := newRoot(world{env: noEnv})
	for c := range leaves(root) {
		_, section, found := strings.Cut(text, "\n.SS "+roff(usageLine(c))+"\n")
		if !found {
			t.Errorf("there is no section for %s", c.CommandPath())
		}
		section, _, _ = strings.Cut(section, "\n.S")
		for f := range flags(c) {
			if want := "\n.BR \\-\\-" + roff(f.Name) + " "; !strings.Contains(section, want) {
				t.Errorf("%s has no %q", c.CommandPath(), want)
			}
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

// complete returns the completions of a shell.
func complete(t *testing.T, args ...string) (all []string) {
	t.Helper()
	for line := range strings.Lines(printed(t, append([]string{"__complete"}, args...)...)) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(word, args[len(args)-1]) && !strings.HasPrefix(word, ":") && !strings.HasPrefix(word, "Completion ended") {
			all = append(all, word)
		}
	}
	return all
}

func TestCommandsFlagsAndValuesAreCompleted(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"st"}, []string{"store", "status", "static"}},
		{[]string{"dead", ""}, []string{"list", "show", "redrive", "drop"}},
		{[]string{"dead", "re"}, []string{"redrive"}},
		{[]string{"breaker", ""}, []string{"open", "close", "reset"}},
		{[]string{"dead", "list", "--old"}, []string{"--older", "--oldest"}},
		{[]string{"pause", "-limit", "x", "--o"}, []string{"--operation"}},
		{[]string{"export", "g"}, []string{"grafana"}},
		{[]string{"completion", ""}, []string{"bash", "zsh", "fish"}},
		{[]string{"serve", ""}, []string{"yaml", "yml"}}, // file extensions
		{[]string{"top", "--sort", "p"}, []string{"p99"}},
		{[]string{"dead", "list", "--reason", "rej"}, []string{"rejected"}},
		{[]string{"help", "dead", ""}, []string{"list", "show", "redrive", "drop"}},
		{[]string{"nonsense", ""}, nil},
	} {
		if got := complete(t, c.args...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.args, got, c.want)
		}
	}
}

func TestUpstreamsAndLimitsAreCompleted(t *testing.T) {
	s := start(t, "http://127.0.0.1:1", "")
	at := []string{"--admin", s.Serve.Admin}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"pause", ""}, []string{"up"}},
		{[]string{"resume", "u"}, []string{"up"}},
		{[]string{"breaker", "open", ""}, []string{"up"}},
		{[]string{"pause", "up", ""}, nil},
		{[]string{"pause", "up", "--limit", ""}, []string{"calls"}},
		{[]string{"pause", "down", "--limit", ""}, nil},
		{[]string{"dead", "list", "--upstream", ""}, []string{"up"}},
	} {
		verbs := 1
		if len(c.args) > 1 && (c.args[0] == "breaker" || c.args[0] == "dead") {
			verbs = 2
		}
		args := slices.Concat(c.args[:verbs], at, c.args[verbs:])
		if got := complete(t, args...); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: got %v, want %v", args, got, c.want)
		}
	}
	// Without a running weir, completion offers the names of weir.yaml.
	t.Chdir(t.TempDir())
	write(t, "weir.yaml", "http://127.0.0.1:1", "")
	if got := complete(t, "pause", "--admin", "127.0.0.1:1", ""); !reflect.DeepEqual(got, []string{"up"}) {
		t.Errorf("got %v from weir.yaml", got)
	}
}

// bash runs weir's script, which completes with the program itself.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "weir.bash")
	if err := os.WriteFile(script, []byte(printed(t, "completion", "bash")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "weir")); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{"dead re": "redrive", "dead list --olde": "--older --oldest", "completion ": "bash zsh fish"} {
		args := strings.Split("weir "+typed, " ")
		line := fmt.Sprintf("source %s; COMP_WORDS=(%s); [[ '%s' == *' ' ]] && COMP_WORDS+=(''); COMP_CWORD=%d; COMP_LINE='weir %s'; COMP_POINT=${#COMP_LINE}; COMP_TYPE=63; __start_weir 2>/dev/null; printf '%%s\\n' \"${COMPREPLY[@]}\" | awk '{print $1}' | xargs", script, strings.Join(args, " "), typed, len(args)-1, typed)
		c := exec.CommandContext(t.Context(), bash, "-c", line)
		c.Env = append(os.Environ(), asWeir+"=1", "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", typed, got, err, want)
		}
	}
	for shell, want := range map[string]string{"zsh": "#compdef weir\n", "fish": "complete -c weir "} {
		if got := printed(t, "completion", shell); !strings.Contains(got, want) {
			t.Errorf("the script for %s has no %q", shell, want)
		}
	}
}
