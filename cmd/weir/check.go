package main

import (
	"fmt"

	"github.com/seed1158cd35/weir/config"
)

// check says everything that is wrong with a configuration file.
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
	if err != nil {
		fmt.Fprintln(w.err, err)
		return errFound
	}
	fmt.Fprintf(w.out, "%s: good: %d upstreams, listening on %s\n", *path, len(file.Upstreams), file.Listen)
	return nil
}
