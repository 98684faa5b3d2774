package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// tryAll tries mutants in parallel and prints each result.
func (r *runner) tryAll(ctx context.Context, all []Mutant, parallel int, out io.Writer) error {
	start := time.Now()
	var bad []Result
	done := 0
	for result := range r.results(ctx, all, parallel) {
		if ctx.Err() != nil {
			continue // the tests were interrupted, so there is no result
		}
		done++
		left := time.Since(start) / time.Duration(done) * time.Duration(len(all)-done)
		fmt.Fprintf(out, "[%*d/%d, about %v left] %s\n", len(fmt.Sprint(len(all))), done, len(all), left.Round(10*time.Second), &result)
		if !result.ok() {
			bad = append(bad, result)
		} else if err := r.seen.add(result.Mutant); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%d of %d mutants caught in %v\n", done-len(bad), len(all), time.Since(start).Round(time.Second))
	err := failure(bad, out)
	if ctx.Err() != nil {
		return errors.Join(fmt.Errorf("interrupted: %d not tried", len(all)-done), err)
	}
	return err
}

// results returns the results as they arrive.
func (r *runner) results(ctx context.Context, all []Mutant, parallel int) <-chan Result {
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
	return results
}

// String returns the line that reports the result.
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
