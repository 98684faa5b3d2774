// Table converts the output of weir's benchmarks, with any number of repetitions, to Markdown: for each group the medians and
// their ratios to the reference and to weir, and at the end weir's results relative to the targets.
//
//	table bench.txt
//	table -record records/core.md -version v0.4.0 bench.txt
//
// The second form adds a row to a record of medians by version instead.
package main

import (
	"flag"
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

// run reads the named files, or in without any.
func run(args []string, in io.Reader, out io.Writer) error {
	f := flag.NewFlagSet("table", flag.ContinueOnError)
	record := f.String("record", "", "the record to which a row is added")
	version := f.String("version", "", "of weir, in that row")
	if err := f.Parse(args); err != nil {
		return err
	}
	files, r := f.Args(), &results{}
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
	if *record != "" {
		return r.addTo(*record, *version)
	}
	write(out, r)
	return nil
}
