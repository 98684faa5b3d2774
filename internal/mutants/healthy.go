package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// healthy checks that the tests pass without a mutant. Otherwise every mutant would appear to be caught. It runs the tests that
// the mutants use.
func (r *runner) healthy(ctx context.Context, all []Mutant, out io.Writer) error {
	runs := runsOf(all)
	packages := make([]string, 0, len(runs))
	for pkg := range runs {
		packages = append(packages, pkg)
	}
	slices.Sort(packages)
	for i, pkg := range packages {
		fmt.Fprintf(out, "unbroken [%d/%d] %s %s\n", i+1, len(packages), pkg, runs[pkg])
		if said, err := r.test(ctx, "", pkg, "-run", runs[pkg]); err != nil {
			return fmt.Errorf("the tests of %s fail without any mutant:\n%s", pkg, said)
		}
	}
	return nil
}

// runsOf returns, for each package, the expression of the tests that its mutants run, or "" if one runs all.
func runsOf(all []Mutant) map[string]string {
	runs := make(map[string][]string)
	for i := range all {
		for _, pkg := range all[i].Test {
			runs[pkg] = append(runs[pkg], all[i].Run)
		}
	}
	joined := make(map[string]string, len(runs))
	for pkg, some := range runs {
		slices.Sort(some)
		if some = slices.Compact(some); some[0] != "" {
			joined[pkg] = strings.Join(some, "|")
		} else {
			joined[pkg] = ""
		}
	}
	return joined
}
