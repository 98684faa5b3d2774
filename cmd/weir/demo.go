package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed1158cd35/weir/internal/demo"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
)

// runDemo shows what weir does for callers, beside what the retries of SDKs do. On a
// terminal it goes on serving afterwards, so that it can be tried by hand;
// elsewhere it ends, so that scripts do.
func runDemo(ctx context.Context, w world) error {
	c, err := demoConfig(w)
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

// demoConfig reads the flags.
func demoConfig(w world) (demo.Config, error) {
	c := demo.Config{Out: w.out, Version: version()}
	f := w.flags("demo", "")
	c.Live = 20 * time.Second
	durationFlag(f, &c.Live, "live", "how `long` real calls are made in the end, from 6s to 10m; 0 for none")
	f.BoolVar(&c.JSON, "json", false, "print one JSON object and end")
	f.Uint64Var(&c.Seed, "seed", 1, "decides when calls come")
	once := f.Bool("once", false, "end when all is played, on a terminal too")
	if err := w.parse(f, 0); err != nil {
		return c, err
	}
	if err := c.Validate(); err != nil {
		fmt.Fprintln(w.err, err)
		f.Usage()
		return c, errUsage
	}
	c.Stay = terminal(w.out) && !*once
	c.Colour = terminal(w.out) && w.drawable() && w.get("NO_COLOR") == ""

	registry := prometheus.NewRegistry()
	metrics := weirprom.New(registry)
	c.Events, c.Watch = metrics.Events(), metrics.Watch
	c.Metrics = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return c, nil
}

func (w world) get(name string) string {
	if w.env == nil {
		return ""
	}
	v, _ := w.env(name)
	return v
}

// drawable reports whether a terminal knows ANSI sequences. The consoles of
// Windows must be told first.
func (w world) drawable() bool { return runtime.GOOS != "windows" && w.get("TERM") != "dumb" }

// terminal reports whether somebody is looking. The null device is a character
// device too, but nobody looks at it.
func terminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
