// Package faults holds docs/reference/faults.md to what there is: each fault that the page lists
// names the tests that play it, and they exist.
package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

var (
	named    = regexp.MustCompile("`([a-z0-9_./]+) (Test[A-Za-z0-9_]+)`")
	declared = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

func TestEveryFaultNamesATestThatExists(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	faults := 0
	for i, row := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(row, "| ") || strings.HasPrefix(row, "| fault |") || strings.HasPrefix(row, "| ---") {
			continue
		}
		faults++
		tests := named.FindAllStringSubmatch(row, -1)
		if len(tests) == 0 {
			t.Errorf("docs/reference/faults.md:%d names no test (`package TestName`): %s", i+1, row)
		}
		for _, m := range tests {
			if !testsOf(t, m[1])[m[2]] {
				t.Errorf("docs/reference/faults.md:%d: %s has no test named %s", i+1, m[1], m[2])
			}
		}
	}
	if faults == 0 {
		t.Error("docs/reference/faults.md lists no faults: has its table another form?")
	}
}

var known = map[string]map[string]bool{}

// testsOf returns the names of a package's tests; the root package is "weir".
func testsOf(t *testing.T, pkg string) map[string]bool {
	if pkg == "weir" {
		pkg = "."
	}
	if known[pkg] != nil {
		return known[pkg]
	}
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	known[pkg] = names
	return names
}
