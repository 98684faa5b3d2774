// Table turns the output of weir's benchmarks, with any number of repetitions,
// into Markdown: per group the medians, their ratios to the reference and to
// weir, and at the end how weir stands to its targets.
//
//	table bench.txt
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "table:", err)
		os.Exit(1)
	}
}

// run reads the named files, or in if there are none.
func run(files []string, in io.Reader, out io.Writer) error {
	r := &results{}
	if len(files) == 0 {
		if err := r.read(in); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := r.readFile(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(r.groups) == 0 {
		return fmt.Errorf("no benchmark lines in the input")
	}
	write(out, r)
	return nil
}
