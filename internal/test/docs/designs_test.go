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

// testName is a test that a row names.
var testName = regexp.MustCompile("`(Test\\w+)`")

// tests are the names of all tests of the tree.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	found := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range declared.FindAllStringSubmatch(text(t, path), -1) {
			found[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Each row of docs/adr/0017-five-designs.md ends with tests that there are.
func TestRowsOfTheDesignsNameTheirTests(t *testing.T) {
	all, rows, asks := tests(t), 0, false // asks: in a table of what a design asks, not in one of figures
	for line := range strings.Lines(text(t, filepath.Join(root, "docs", "adr", "0017-five-designs.md"))) {
		head := strings.HasPrefix(line, "| the design asks")
		asks = strings.HasPrefix(line, "|") && (asks || head)
		if !asks || head || strings.HasPrefix(line, "| ---") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "|")
		rows++
		named := testName.FindAllStringSubmatch(cells[len(cells)-2], -1)
		if len(named) == 0 {
			t.Errorf("no test is named by %s", line)
		}
		for _, m := range named {
			if !all[m[1]] {
				t.Errorf("there is no %s, which is named by %s", m[1], line)
			}
		}
	}
	if rows == 0 {
		t.Error("docs/adr/0017-five-designs.md has no rows")
	}
}

// The configuration of each design is on the page, is right, and weir takes it whole.
func TestDesignsAreCompleteConfigurations(t *testing.T) {
	page := text(t, filepath.Join(root, "docs", "adr", "0017-five-designs.md"))
	files, err := filepath.Glob(filepath.Join(root, "examples", "designs", "*.yaml"))
	if err != nil || len(files) != 5 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		if name := filepath.Base(file); !strings.Contains(page, "](../../examples/designs/"+name+")") {
			t.Errorf("docs/adr/0017-five-designs.md has no link to %s", name)
		}
		data := text(t, file)
		f, err := config.Parse(file, []byte(data), secrets(data))
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
