package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/observe/logs"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// flushing bounds how long a log that is not read keeps an ended program.
const flushing = 2 * time.Second

// runServe runs the sidecar until it is told to stop.
func runServe(ctx context.Context, w world) error {
	f := w.flags("serve", "")
	path := f.String("config", "weir.yaml", "the configuration file; SIGHUP and weir reload read it again")
	if err := w.parse(f, 0); err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // whoever read the log has left: no reason to end
	buffers.CollectLess()
	queue := logs.NewQueue(w.err)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushing)
		defer cancel()
		_ = queue.Close(ctx) // there is no other place to tell
	}()
	reload, stop := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)

	options := serve.Options{Log: queue, Env: w.env, Version: cli.Version()}
	if m := managerOf(w.env, os.Getpid()); m != nil {
		defer m.close()
		options.Tell, options.Beat = m.tell, m.beat
	}
	s, err := serve.New(*path, options)
	if err != nil {
		return err
	}
	slog.SetDefault(s.Log()) // of libraries that have something to say
	return s.Run(ctx, reload, stop)
}
