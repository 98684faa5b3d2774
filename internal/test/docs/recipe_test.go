//go:build unix

package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// A recipe is a page that a test runs as written. The test writes the page's files, starts weir at the same point as the page,
// and runs its commands in order. A text block has the output of the preceding commands.
type recipe struct {
	page    string            // its path below docs/how-to
	replace map[string]string // strings of weir.yaml, such as addresses, and their replacements
	env     []string          // NAME=VALUE of weir serve
	files   map[string]string // files that the reader has already, by name
	dir     string            // directory of commands and files; "" creates one
}

// triedAsRecipes are pages that tests of this package run as recipes.
var triedAsRecipes = []string{"call-s3.md", "deliver-webhooks.md", "run-coding-agents.md", "use-envoy.md"}

// named matches the first line of a block that is a file with a name: "# upload.py".
var named = regexp.MustCompile(`^(?:#|//) ([a-z0-9-]+\.[a-z]+)\n`)

func (r *recipe) try(t *testing.T) *served.Process {
	t.Helper()
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := r.dir
	if dir == "" {
		dir = t.TempDir()
	}
	for name, text := range r.files {
		write(t, dir, name, text)
	}
	var (
		w             *served.Process
		yaml, exports string
		printed       string // output of the last commands, if no text block has checked it yet
	)
	for _, s := range all {
		if s.File != "docs/how-to/"+r.page {
			continue
		}
		if m := named.FindStringSubmatch(s.Text); m != nil {
			write(t, dir, m[1], at(w, s.Text))
			continue
		}
		switch s.Kind {
		case "yaml":
			yaml = s.Text
		case "sh":
			lines := commands(&s)
			if len(lines) == 1 && strings.HasPrefix(lines[0], "weir serve") {
				w = r.serve(t, yaml)
				continue
			}
			printed = sh(t, &s, dir, exports+at(w, s.Text), w)
			for _, l := range lines {
				if strings.HasPrefix(l, "export ") {
					exports += l + "\n"
				}
			}
		case "text":
			if !shows(s.Text, printed) {
				t.Errorf("%s:%d: the page shows\n%s\nand the commands print\n%s", s.File, s.Line, s.Text, printed)
			}
		}
	}
	if w == nil {
		t.Fatalf("%s starts no weir", r.page)
	}
	return w
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve starts weir with the page's file. Only addresses differ.
func (r *recipe) serve(t *testing.T, yaml string) *served.Process {
	t.Helper()
	for old, with := range r.replace {
		if !strings.Contains(yaml, old) {
			t.Fatalf("%s: its weir.yaml has no %s\n%s", r.page, old, yaml)
		}
		yaml = strings.ReplaceAll(yaml, old, with)
	}
	for _, setting := range []string{"listen", "admin"} {
		if !regexp.MustCompile(`(?m)^` + setting + `:`).MatchString(yaml) {
			yaml = setting + ": 127.0.0.1:0\n" + yaml
		}
	}
	return served.Start(t, yaml, r.env...)
}

// at replaces weir's default addresses by the addresses of w.
func at(w *served.Process, text string) string {
	if w == nil {
		return text
	}
	return strings.NewReplacer("127.0.0.1:8080", w.Serve.Listen, "127.0.0.1:8081", w.Serve.Admin).Replace(text)
}

var asksAdmin = regexp.MustCompile(`(?m)^weir (?:breaker|dead|pause|resume|status|why)\b.*$`)

// sh runs commands as one script, and returns their output, with weir's default addresses.
func sh(t *testing.T, s *Sample, dir, script string, w *served.Process) string {
	t.Helper()
	script = strings.ReplaceAll(script, "\\\n", " ")
	if w != nil {
		script = asksAdmin.ReplaceAllStringFunc(script, func(line string) string {
			line, comment, _ := strings.Cut(line, " #")
			return fmt.Sprintf("%s --admin %s # %s", line, w.Serve.Admin, comment)
		})
	}
	c := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "HOME="+dir, "PATH="+filepath.Dir(served.Binary(t))+":"+os.Getenv("PATH"))
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Errorf("%s:%d: %v\n%s\n%s%s", s.File, s.Line, err, script, out, &errs)
	}
	if w == nil {
		return string(out)
	}
	return strings.NewReplacer(w.Serve.Listen, "127.0.0.1:8080", w.Serve.Admin, "127.0.0.1:8081").Replace(string(out))
}

// differ matches the parts of a line that change: IDs, times and durations.
var differ = regexp.MustCompile(`[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?|\b\d+(?:\.\d+)?(?:ms|s)\b`)

// shows reports whether a block equals the output, line by line, except for changing parts. "..." matches any text, and blanks
// any number of blanks.
func shows(block, printed string) bool {
	want, got := lines(block), lines(printed)
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		expr := regexp.QuoteMeta(want[i])
		if !regexp.MustCompile("^" + strings.ReplaceAll(expr, `\.\.\.`, ".*") + "$").MatchString(got[i]) {
			return false
		}
	}
	return true
}

func lines(text string) (all []string) {
	for l := range strings.Lines(text) {
		if l = strings.Join(strings.Fields(l), " "); l != "" {
			all = append(all, differ.ReplaceAllString(l, "DIFFERS"))
		}
	}
	return all
}

func TestShowsComparesWhatIsTheSameEachTime(t *testing.T) {
	for _, c := range []struct {
		block, printed string
		want           bool
	}{
		{"a  1\n", "a 1\n\n", true},
		{"a ... c\n", "a b c\n", true},
		{"waited 12ms\n", "waited 1.5s\n", true},
		{"id 019ab0b3-7c1e-7a53-9d0e-5f6d3c1a2b4c\n", "id 01a22323-69cc-7248-b2f8-4ebbadc5bdd3\n", true},
		{"a.c\n", "abc\n", false},
		{"a\nb\n", "a\n", false},
		{"4 calls\n", "5 calls\n", false},
	} {
		if got := shows(c.block, c.printed); got != c.want {
			t.Errorf("a block of %q shows %q: %v, want %v", c.block, c.printed, got, c.want)
		}
	}
}
