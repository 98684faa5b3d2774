// Package faults checks that the tests which tests.txt lists for each fault of docs/reference/faults.md exist.
package faults

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

var declared = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)

// testsOfFaults reads tests.txt: the tests of each fault, as package and name.
func testsOfFaults(t *testing.T) map[string][]string {
	t.Helper()
	list, err := os.ReadFile("tests.txt")
	if err != nil {
		t.Fatal(err)
	}
	all, fault := make(map[string][]string), ""
	for line := range strings.Lines(string(list)) {
		line = strings.TrimRight(line, "\n")
		name, indented := strings.CutPrefix(line, "\t")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case indented:
			all[fault] = append(all[fault], name)
		default:
			fault = line
			all[fault] = nil
		}
	}
	return all
}

func TestEveryFaultHasTestsThatExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed, faults := testsOfFaults(t), make(map[string]bool)
	for i, row := range strings.Split(string(page), "\n") {
		fault, isFault := strings.CutPrefix(row, "- **")
		if !isFault {
			continue
		}
		fault, _, _ = strings.Cut(fault, "**: ")
		faults[fault] = true
		if len(listed[fault]) == 0 {
			t.Errorf("docs/reference/faults.md:%d: tests.txt has no test of %q", i+1, fault)
		}
	}
	for fault, tests := range listed {
		if !faults[fault] {
			t.Errorf("tests.txt: docs/reference/faults.md has no fault %q", fault)
		}
		for _, test := range tests {
			if pkg, name, _ := strings.Cut(test, " "); !testsOf(t, pkg)[name] {
				t.Errorf("tests.txt: %s: %s has no test named %s", fault, pkg, name)
			}
		}
	}
	if len(faults) < 50 {
		t.Errorf("docs/reference/faults.md lists %d faults: has its list another form?", len(faults))
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
