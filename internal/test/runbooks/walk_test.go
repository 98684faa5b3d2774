//go:build unix

package runbooks

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
	"github.com/seed1158cd35/weir/observe/rules"
)

var update = flag.Bool("update", false, "write what the commands say into the pages")

const pages = "../../../docs/runbooks"

func TestMain(m *testing.M) {
	watchdog.Start()
	code := m.Run()
	served.Clean()
	os.Exit(code)
}

// sections are the headings of each page, in order.
var sections = []string{"Meaning", "Impact", "Diagnosis", "Causes", "Mitigation", "Verification"}

func TestEachAlertHasAPageWithAllSections(t *testing.T) {
	t.Parallel()
	for _, a := range rules.Alerts(rules.Options{Cost: 1}) {
		text, err := os.ReadFile(filepath.Join(pages, a.Runbook()))
		if err != nil {
			t.Errorf("%s: %v", a.Name, err)
			continue
		}
		head, _, _ := strings.Cut(string(text), ": ")
		if names := strings.Split(strings.TrimPrefix(head, "# "), ", "); !slices.Contains(names, a.Name) || !strings.HasPrefix(head, "# ") {
			t.Errorf("%s begins with %q", a.Runbook(), head)
		}
		var has []string
		for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(text), -1) {
			has = append(has, m[1])
		}
		if !slices.Equal(has, sections) {
			t.Errorf("%s has %q, want %q", a.Runbook(), has, sections)
		}
		if scenes[a.Runbook()] == nil {
			t.Errorf("nobody plays %s", a.Name)
		}
	}
}

// TestPagesAreWalkedThrough causes each fault, runs the commands of its page, and ends the fault before the last section.
func TestPagesAreWalkedThrough(t *testing.T) {
	for page, play := range scenes {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(pages, page))
			if err != nil {
				t.Fatal(err)
			}
			s := play(t)
			w := walk{scene: s, page: page}
			if n := w.along(string(text)); n < 3 {
				t.Errorf("%s has %d commands", page, n)
			}
			if *update {
				if err := os.WriteFile(filepath.Join(pages, page), []byte(w.out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A walk is the state of running a page.
type walk struct {
	*scene
	page string
	said string // output of the last command
	line string // the last command after replacements
	out  strings.Builder
}

// along runs the commands of a page, compares their output, and returns their number.
func (w *walk) along(text string) (n int) {
	kind, block := "", ""
	for line := range strings.Lines(text) {
		fence, is := strings.CutPrefix(line, "```")
		switch {
		case is && kind == "":
			kind, block = strings.TrimSpace(fence), ""
		case is && kind == "sh":
			n += len(strings.Split(strings.TrimSpace(block), "\n"))
			w.run(block)
			kind = ""
		case is:
			if kind == "text" {
				block = w.compare(block)
			}
			w.out.WriteString(block)
			kind = ""
		case kind == "text":
			block += line
			continue
		case kind != "":
			block += line
		case strings.HasPrefix(line, cmp.Or(w.ends, "## Verification")):
			w.heal()
		}
		w.out.WriteString(line)
	}
	return n
}

var ofWeir = regexp.MustCompile(`\bweir (status|why|pause|resume|breaker [a-z]+|dead [a-z]+)\b`)

// changing matches commands whose output changes when they are repeated.
var changing = regexp.MustCompile(`\bweir dead (redrive|drop)\b`)

// run runs commands, which must all succeed.
func (w *walk) run(block string) {
	w.Helper()
	here := strings.NewReplacer("127.0.0.1:8080", w.w.Serve.Listen, "127.0.0.1:8081", w.w.Serve.Admin, "$(pidof weir)", fmt.Sprint(w.w.Cmd.Process.Pid))
	w.line = ofWeir.ReplaceAllString(here.Replace(block), "$0 -admin "+w.w.Serve.Admin)
	if said, err := w.again(); err != nil {
		w.Errorf("%s: %s%v\n%s", w.page, block, err, said)
	}
}

// again repeats the last commands.
func (w *walk) again() (string, error) {
	cmd := exec.Command("sh", "-c", "set -e\n"+w.line)
	cmd.Dir = filepath.Dir(w.w.File)
	cmd.Env = append(cmd.Environ(), "PATH="+filepath.Dir(served.Binary(w))+":/usr/bin:/bin")
	out, err := cmd.CombinedOutput()
	w.said = strings.NewReplacer(w.alias...).Replace(string(out))
	return w.said, err
}

// compare waits until the last commands print the page's text, line by line, and returns their output.
func (w *walk) compare(want string) string {
	w.Helper()
	if *update {
		if !changing.MatchString(w.line) {
			<-time.After(2 * time.Second) // until all information is available
			_, _ = w.again()
		}
		return strings.NewReplacer(w.w.Serve.Listen, "127.0.0.1:8080", w.w.Serve.Admin, "127.0.0.1:8081", filepath.Dir(w.w.File), "/etc/weir", w.url, "https://api.example.com").Replace(w.said)
	}
	missing := ""
	for end := time.Now().Add(served.Patience); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		if missing = lacks(w.said, want); missing == "" {
			return want
		}
		_, _ = w.again()
	}
	w.Errorf("%s: there is no line like\n%s\nin what %q says:\n%s", w.page, missing, w.line, w.said)
	return want
}

// lacks returns the first line of want without an equivalent in the output.
func lacks(said, want string) string {
	var lines []string
	for l := range strings.Lines(said) {
		lines = append(lines, alike(l))
	}
	flights := false // the bound of calls in flight is learned and changes
	for l := range strings.Lines(want) {
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "IN FLIGHT") {
			flights = true
		} else if l == "" || flights && strings.Contains(l, "  TIER") {
			flights = false
		}
		if l != "" && !flights && !slices.Contains(lines, alike(l)) {
			return l
		}
	}
	return ""
}

var (
	addresses = regexp.MustCompile(`https?://[^ ",;}]+|127\.0\.0\.1:\d+`)
	instants  = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ][0-9:.]+(Z|[+-]\d\d:\d\d)?|\b\d\d:\d\d:\d\d\b`)
	ids       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\b[A-Z2-7]{26}\b|\b[0-9a-f]{16}\b`)
	files     = regexp.MustCompile(`/[\w./-]*/`)
	durations = regexp.MustCompile(`\b\d+(\.\d+)?(ns|us|µs|ms|s|m|h)(\d+(\.\d+)?(ms|s|m))*\b`)
	ratios    = regexp.MustCompile(`\b\d+/\d+\b|retries remaining: \d+|has used \d+ units|\bnow\b`)
	numbers   = regexp.MustCompile(`\b[0-9]*[1-9][0-9]*(\.\d+)?(e[+-]?\d+)?\b|\b0\.\d+\b`)
	spaces    = regexp.MustCompile(`\s+`)
)

// alike removes changing parts from a line: a number other than 0 becomes N.
func alike(l string) string {
	for _, r := range []struct {
		what *regexp.Regexp
		by   string
	}{{addresses, "ADDRESS"}, {instants, "WHEN"}, {ids, "ID"}, {files, "/"}, {durations, "-"}, {ratios, "-"}, {numbers, "N"}, {spaces, " "}} {
		l = r.what.ReplaceAllString(l, r.by)
	}
	return strings.TrimSpace(l)
}
