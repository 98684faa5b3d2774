package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"sync"
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
	list := flags.Bool("list", false, "list them, and run nothing")
	parallel := flags.Int("parallel", 2, "how many at once")
	timeout := flags.Duration("timeout", 3*time.Minute, "for the tests of one package")
	if err := flags.Parse(args); err != nil {
		return err
	}
	all, err := chosen(*match)
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
	r := &runner{root, *timeout}
	if err := r.healthy(ctx, all, out); err != nil {
		return err
	}
	return r.tryAll(ctx, all, *parallel, out)
}

// chosen is the mutants whose name matches.
func chosen(match string) ([]Mutant, error) {
	expr, err := regexp.Compile(match)
	if err != nil {
		return nil, err
	}
	sub, err := fs.Sub(lists, "list")
	if err != nil {
		return nil, err
	}
	all, err := readAll(sub)
	all = slices.DeleteFunc(all, func(m Mutant) bool { return !expr.MatchString(m.Name) })
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("no mutant matches %q", match)
	}
	return all, err
}

// healthy makes sure that the tests pass without a mutant: else each would be caught.
func (r *runner) healthy(ctx context.Context, all []Mutant, out io.Writer) error {
	var packages []string
	for i := range all {
		packages = append(packages, all[i].Test...)
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	for i, pkg := range packages {
		fmt.Fprintf(out, "unbroken [%d/%d] %s\n", i+1, len(packages), pkg)
		if said, err := r.test(ctx, pkg); err != nil {
			return fmt.Errorf("the tests of %s fail without any mutant:\n%s", pkg, said)
		}
	}
	return nil
}

// tryAll tries some mutants at a time and tells of each.
func (r *runner) tryAll(ctx context.Context, all []Mutant, parallel int, out io.Writer) error {
	start := time.Now()
	todo, results := make(chan *Mutant), make(chan Result)
	var workers sync.WaitGroup
	for range max(1, parallel) {
		workers.Go(func() {
			for m := range todo {
				results <- r.try(ctx, m)
			}
		})
	}
	go func() {
		defer close(results)
		defer workers.Wait()
		defer close(todo)
		for i := range all {
			if ctx.Err() != nil {
				return
			}
			todo <- &all[i]
		}
	}()
	var bad []Result
	done := 0
	for result := range results {
		done++
		fmt.Fprintf(out, "[%*d/%d] %s\n", len(fmt.Sprint(len(all))), done, len(all), &result)
		if !result.ok() {
			bad = append(bad, result)
		}
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	fmt.Fprintf(out, "%d of %d mutants caught in %v\n", len(all)-len(bad), len(all), time.Since(start).Round(time.Second))
	return failure(bad, out)
}

// String is the line that tells of it.
func (r *Result) String() string {
	return fmt.Sprintf("%5.1fs %-42s %s  %s", r.Took.Seconds(), r.Mutant.Name, r.Verdict, r.Detail)
}

func failure(bad []Result, out io.Writer) error {
	if len(bad) == 0 {
		return nil
	}
	for i := range bad {
		m := bad[i].Mutant
		fmt.Fprintf(out, "\n%s (internal/mutants/list/%s)\n  %s: %s\n  %s\n", m.Name, m.Place, bad[i].Verdict, bad[i].Detail, m.Why)
	}
	return fmt.Errorf("%d mutants not caught: write the test that fails, or mend an entry whose text has changed", len(bad))
}
