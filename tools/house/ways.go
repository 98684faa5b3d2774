package main

import (
	"strings"

	"github.com/fzipp/gocyclo"
)

// ways returns the functions of the tree, without tests, with a cyclomatic complexity above most.
func ways(tree string, most int) gocyclo.Stats {
	all := gocyclo.Analyze([]string{tree}, nil)
	var found gocyclo.Stats
	for _, s := range all.SortAndFilter(-1, most) {
		if !strings.HasSuffix(s.Pos.Filename, "_test.go") && !strings.Contains(s.Pos.Filename, "/.deps/") {
			found = append(found, s)
		}
	}
	return found
}
