package main

import (
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir/answers"
	"github.com/seed1158cd35/weir/config"
)

// check says everything that is wrong with a configuration file, and with the files of prices
// and answers that it names.
func check(w world) error {
	f := w.flags("check", "[weir.yaml]")
	path := f.String("config", "", "the file to check")
	if err := w.parse(f, 1); err != nil {
		return err
	}
	if *path == "" {
		*path = f.Arg(0)
	}
	if *path == "" {
		*path = "weir.yaml"
	}
	file, err := config.Load(*path, w.env)
	if err == nil {
		err = checkFiles(file)
	}
	if err != nil {
		fmt.Fprintln(w.err, err)
		return errFound
	}
	fmt.Fprintf(w.out, "%s: good: %d upstreams, listening on %s\n", *path, len(file.Upstreams), file.Listen)
	return nil
}

// checkFiles reads the files that a configuration names, as serve does.
func checkFiles(file *config.File) error {
	_, err := readPrices(file.Prices)
	errs := []error{err}
	for _, u := range file.Upstreams {
		c := file.LLM[u.Name].Cascade
		if c == nil {
			continue
		}
		for _, t := range c.Tiers {
			if t.Answers == "" {
				continue
			}
			if err := new(answers.Book).Load(t.Answers); err != nil {
				errs = append(errs, fmt.Errorf("upstream %s: llm: cascade: %w", u.Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
