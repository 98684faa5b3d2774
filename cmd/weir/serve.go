package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/observe/logs"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// flushTimeout bounds the delay of the program's end by a log that is not read.
const flushTimeout = 2 * time.Second

func newServe(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve [FILE]",
		Short: "Run the sidecar or gateway",
		Long: `Run the sidecar or gateway that a configuration file describes. Without FILE, read weir.yaml. SIGHUP and "weir reload" read the file
again. SIGTERM and SIGINT end weir after the running calls; a second signal ends it immediately.

The log goes to standard error: as text on a terminal, otherwise one JSON object per line.`,
		Example: `  weir serve weir.yaml
  weir serve weir.yaml --listen :8080 --admin 127.0.0.1:9081`,
		ValidArgsFunction: completeYAML,
	}
	path := configFlag(c, "weir.yaml")
	listen := c.Flags().String("listen", "", "`ADDRESS` for requests, instead of the one in the file")
	admin := c.Flags().String("admin", "", "`ADDRESS` for metrics and status, instead of the one in the file; off for none")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			if c.Flags().Changed("config") {
				return usagef("FILE and --config both name a file; leave one out")
			}
			*path = args[0]
		}
		return w.overridden(map[string]string{"WEIR_LISTEN": *listen, "WEIR_ADMIN": *admin}).serve(c.Context(), *path)
	}
	return c
}

// overridden returns w with flags as environment variables. Empty flags change nothing.
func (w world) overridden(flags map[string]string) world {
	env := w.env
	w.env = func(name string) (string, bool) {
		if value := flags[name]; value != "" {
			return value, true
		}
		return env(name)
	}
	return w
}

// serve runs the sidecar until a signal ends it.
func (w world) serve(ctx context.Context, path string) error {
	signal.Ignore(syscall.SIGPIPE) // a closed log must not end the program
	buffers.CollectLess()
	queue := logs.NewQueue(w.err)
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		_ = queue.Close(ctx) // there is no log for this error
	}()
	reload, stop := make(chan os.Signal, 1), make(chan os.Signal, 2)
	signal.Notify(reload, syscall.SIGHUP)
	defer signal.Stop(reload)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)

	options := serve.Options{Log: queue, TextLog: isTerminal(w.err), Env: w.env, Version: cli.Version()}
	if m := managerOf(w.env, os.Getpid()); m != nil {
		defer m.close()
		options.Tell, options.Beat = m.tell, m.beat
	}
	s, err := serve.New(path, options)
	if err != nil {
		return err
	}
	slog.SetDefault(s.Log()) // for libraries that use slog
	return s.Run(ctx, reload, stop)
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
