package main

import (
	"context"
	"fmt"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// runStore runs weir store.
func runStore(ctx context.Context, w world) error {
	if len(w.args) == 0 || w.args[0] != "init" {
		fmt.Fprintln(w.err, "usage: weir store init [-config weir.yaml]")
		return cli.ErrUsage
	}
	w.args = w.args[1:]
	f := w.flags("store init", "")
	path := f.String("config", "weir.yaml", "the configuration file")
	if err := w.parse(f, 0); err != nil {
		return err
	}
	file, err := config.Load(*path, w.env)
	if err != nil {
		return err
	}
	if d := file.Deliveries; file.Store == nil && !d.InFleet() && (d == nil || d.Requests == nil) {
		return fmt.Errorf("%s has no store, and no deliveries in postgres or aws, nor requests in a queue", *path)
	}
	return serve.Init(ctx, w.out, file, serve.Options{Env: w.env})
}
