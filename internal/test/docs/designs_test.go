package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// designsPage is the page with a row for each requirement of the designs.
const designsPage = "examples/designs/README.md"

var (
	code       = regexp.MustCompile("`([^`]+)`")
	designTest = regexp.MustCompile(`^go test (?:-C (\S+) )?(\S+) -run (Test\w+)$`)
	settingKey = regexp.MustCompile(`(?:^|[{ ,])([a-z_0-9]+): `)
	presetOf   = regexp.MustCompile(`preset: ([a-z0-9-]+)`)
	fieldRow   = regexp.MustCompile("(?m)^- `([a-z_0-9]+)` \\(")
	cliHeading = regexp.MustCompile(`(?m)^## (weir [a-z -]+[a-z])`)
)

// A designRow is a row of a design: its requirement, how weir meets it, and what confirms it.
type designRow struct{ line, requirement, setting, confirm string }

// designRows returns the rows of all designs.
func designRows(t *testing.T) (rows []designRow) {
	t.Helper()
	inTable := false
	for line := range strings.Lines(text(t, filepath.Join(root, designsPage))) {
		line = strings.TrimSpace(line)
		head := line == "| the design | in weir | confirm |"
		inTable = strings.HasPrefix(line, "|") && (inTable || head)
		if !inTable || head || strings.HasPrefix(line, "| ---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 3 {
			t.Errorf("a row has %d cells: %s", len(cells), line)
			continue
		}
		rows = append(rows, designRow{line, cells[0], cells[1], cells[2]})
	}
	return rows
}

// matches returns the first submatches of an expression in a page.
func matches(t *testing.T, e *regexp.Regexp, page string) map[string]bool {
	t.Helper()
	found := make(map[string]bool)
	for _, m := range e.FindAllStringSubmatch(text(t, filepath.Join(root, page)), -1) {
		found[m[1]] = true
	}
	return found
}

func TestRowsOfDesignsNameCommandsThatExist(t *testing.T) {
	commands := matches(t, cliHeading, "docs/reference/cli.md")
	rows := designRows(t)
	for _, r := range rows {
		named := code.FindAllStringSubmatch(r.confirm, -1)
		if len(named) == 0 {
			t.Errorf("no command confirms the row %s", r.line)
		}
		for _, m := range named {
			command := m[1]
			if test := designTest.FindStringSubmatch(command); test != nil {
				if has := functions(t, filepath.Join(test[1], test[2])); !strings.Contains("\n"+has, "\n"+test[3]) {
					t.Errorf("%s: there is no such test", command)
				}
				continue
			}
			words := strings.Fields(command)
			switch {
			case words[0] == "make": // TestVerbsAreInTheMakefile
			case words[0] != "weir" || !commands[strings.Join(words[:2], " ")] && !commands[strings.Join(words[:min(3, len(words))], " ")]:
				t.Errorf("%s: there is no such command", command)
			case words[1] == "presets" && !exists(filepath.Join(root, "sidecar/config/presets", words[2]+".yaml")):
				t.Errorf("%s: there is no such preset", command)
			case words[1] == "check" && !exists(filepath.Join(root, words[len(words)-1])):
				t.Errorf("%s: there is no such file", command)
			}
		}
	}
	if len(rows) < 80 {
		t.Errorf("only %d rows were found", len(rows))
	}
}

func TestRowsOfDesignsNameSettingsAndMetricsThatExist(t *testing.T) {
	fields := matches(t, fieldRow, "docs/reference/configuration.md")
	for _, scope := range []string{"user", "tenant"} { // names that a file defines
		fields[scope] = true
	}
	metrics, cloudWatch := text(t, filepath.Join(root, "docs/reference/metrics.md")), text(t, filepath.Join(root, "docs/how-to/use-cloudwatch.md"))
	published := regexp.MustCompile(`^(RateLimiter|Model|Throttled|Retry|APICall|DeadLetter|Jobs)[A-Z]\w+$`)
	n := 0
	for _, r := range designRows(t) {
		for _, m := range code.FindAllStringSubmatch(r.setting, -1) {
			for _, key := range settingKey.FindAllStringSubmatch(m[1], -1) {
				n++
				if !fields[key[1]] {
					t.Errorf("`%s`: there is no field %s", m[1], key[1])
				}
			}
			if p := presetOf.FindStringSubmatch(m[1]); p != nil && !exists(filepath.Join(root, "sidecar/config/presets", p[1]+".yaml")) {
				t.Errorf("`%s`: there is no such preset", m[1])
			}
			if strings.HasPrefix(m[1], "weir_") && !strings.Contains(metrics, "`"+m[1]) {
				t.Errorf("`%s`: docs/reference/metrics.md does not have this metric", m[1])
			}
			if published.MatchString(m[1]) && !strings.Contains(cloudWatch, "`"+m[1]+"`") {
				t.Errorf("`%s`: docs/how-to/use-cloudwatch.md does not have this metric", m[1])
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d settings were found", n)
	}
}

// The figures have a row for each design and situation. DRS shares no store.
func TestFiguresOfDesignsAreComplete(t *testing.T) {
	page := text(t, filepath.Join(root, designsPage))
	for _, design := range []string{"drs", "bucket", "messaging", "chat", "s3"} {
		for _, situation := range []string{"calm", "throttled", "down", "store away"} {
			want := design != "drs" || situation != "store away"
			if got := strings.Contains(page, "\n| "+design+" | "+situation+" | "); got != want {
				t.Errorf("%s, %s: the figures have a row: %v, want %v", design, situation, got, want)
			}
		}
	}
}

// Each design's configuration is on the page and valid, and weir can create its upstreams.
func TestDesignsAreCompleteConfigurations(t *testing.T) {
	page := text(t, filepath.Join(root, designsPage))
	files, err := filepath.Glob(filepath.Join(root, "examples", "designs", "*.yaml"))
	if err != nil || len(files) != 5 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		if name := filepath.Base(file); !strings.Contains(page, "]("+name+")") {
			t.Errorf("%s has no link to %s", designsPage, name)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f, err := config.Parse(file, data, func(name string) (string, bool) {
			return "0123456789abcdef0123456789abcdef", name == "HASH_SECRET" || name == "GEMINI_API_KEY"
		})
		if err != nil {
			t.Error(err)
			continue
		}
		for _, u := range f.Upstreams {
			if _, err := weir.New(u.Name, u.Policy, weir.Options{}); err != nil {
				t.Error(err)
			}
		}
	}
}
