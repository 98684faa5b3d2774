package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed1158cd35/weir/cmd/weir-demo/demo"
	"github.com/seed1158cd35/weir/internal/cli"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
)

// runStories compares weir with the retries of SDKs. On a terminal it continues to serve afterwards, so that the user can send
// requests. Otherwise it ends, so that scripts do.
func runStories(ctx context.Context, w world) error {
	c, err := storiesConfig(w)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = demo.Run(ctx, c)
	if ctx.Err() != nil && !c.JSON {
		_, err = fmt.Fprintln(w.out)
	}
	return err
}

// storiesConfig reads the flags.
func storiesConfig(w world) (demo.Config, error) {
	c := demo.Config{Out: w.out, Version: cli.Version()}
	f := cli.Flags("weir-demo", "", w.err)
	c.Live = 20 * time.Second
	cli.Duration(f, &c.Live, "live", "how `long` the live part at the end lasts, from 6s to 10m; 0 for none")
	f.BoolVar(&c.JSON, "json", false, "print one JSON object and exit")
	f.Uint64Var(&c.Seed, "seed", 1, "seed of the random arrival times")
	var err error
	if c.Stay, c.Colour, err = w.parse(f, func() error { return c.Validate() }); err != nil {
		return c, err
	}

	registry := prometheus.NewRegistry()
	metrics := weirprom.New(registry)
	c.Events, c.Watch = metrics.Events(), metrics.Watch
	c.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return c, nil
}
