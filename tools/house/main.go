// Command house measures the structure of the tree: its size, the share of comments, functions that are too complex,
// and unused exported names.
//
//	cd tools && go run ./house
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

const mostWays = 15 // cyclomatic complexity of a function

func main() {
	tree := flag.String("C", "..", "the `directory` of the tree")
	flag.Parse()
	wrong, err := run(os.Stdout, *tree)
	if err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(2)
	}
	if wrong > 0 {
		os.Exit(1)
	}
}

// run writes the measurements, and returns the number of violations.
func run(w io.Writer, tree string) (wrong int, err error) {
	pkgs, err := load(tree)
	if err != nil {
		return 0, err
	}
	sizes(w, pkgs)
	complicated := ways(tree, mostWays)
	fmt.Fprintf(w, "\nfunctions with more than %d ways through them: %d\n", mostWays, len(complicated))
	for _, s := range complicated {
		fmt.Fprintf(w, "  %2d  %s.%s  %s:%d\n", s.Complexity, s.PkgName, s.FuncName, s.Pos.Filename, s.Pos.Line)
	}
	unused := alone(pkgs)
	fmt.Fprintf(w, "\nexported names that no other package and no example uses: %d\n", len(unused))
	for _, u := range unused {
		fmt.Fprintln(w, " ", u)
	}
	between(w, pkgs)
	decision(w, pkgs)
	return len(complicated), nil
}
