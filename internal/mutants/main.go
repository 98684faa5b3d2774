package main

import (
	"context"
	"embed"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed list/*.txt
var lists embed.FS

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	match := flags.String("run", "", "only mutants whose name matches the regular `expression`")
	file := flags.String("file", "", "only mutants of a file whose path matches the regular `expression`")
	by := flags.String("by", "", "run the `tests` instead of those of each mutant: a package and flags of go test")
	list := flags.Bool("list", false, "list them, and run nothing")
	again := flags.Bool("again", false, "try those, too, that an interrupted run has seen caught")
	parallel := flags.Int("parallel", 2, "how many at once")
	timeout := flags.Duration("timeout", 3*time.Minute, "for the tests of one package")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := chosen(*match, *file)
	if err != nil {
		return err
	}
	if *list {
		for _, m := range all {
			fmt.Fprintf(out, "%-45s %s\n", m.Name, m.Why)
		}
		return nil
	}
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	r := &runner{root: root, timeout: *timeout}
	if *by != "" {
		r.args = strings.Fields(*by)
		for i := range all {
			all[i].Test, all[i].Run = r.args[:1], ""
		}
	}
	if *match == "" && *file == "" && *by == "" {
		if all, err = r.resume(all, *again, out); err != nil {
			return err
		}
	}
	if err := r.healthy(ctx, all, out); err != nil {
		return err
	}
	return r.tryAll(ctx, all, *parallel, out)
}

// chosen returns the mutants whose name matches, and of which a file does.
func chosen(match, file string) ([]Mutant, error) {
	expr, err := regexp.Compile(match)
	if err != nil {
		return nil, err
	}
	path, err := regexp.Compile(file)
	if err != nil {
		return nil, err
	}
	sub, err := fs.Sub(lists, "list")
	if err != nil {
		return nil, err
	}
	all, err := readAll(sub)
	changes := func(e Edit) bool { return path.MatchString(e.File) }
	all = slices.DeleteFunc(all, func(m Mutant) bool { return !expr.MatchString(m.Name) || !slices.ContainsFunc(m.Edits, changes) })
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no mutant matches %q", match+file)
	}
	return all, err
}
