package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// check says everything that is wrong with a configuration file, and with the files of prices
// and answers that it names.
func check(ctx context.Context, w world) error {
	f := w.flags("check", "[weir.yaml]")
	path := f.String("config", "", "the file to check")
	try := f.Bool("connect", false, "try the store, the upstreams and all else that the file names, too")
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
	if err == nil && len(file.Removed()) > 0 {
		err = file.Removed()
	}
	if err == nil {
		err = serve.Check(file)
	}
	if err != nil {
		fmt.Fprintln(w.err, err)
		return cli.ErrFound
	}
	fmt.Fprintf(w.out, "%s: good: %s, listening on %s\n", *path, counted(len(file.Upstreams), "upstream"), file.Listen)
	if bad := file.CheckEnv(w.env); bad != nil && !*try {
		fmt.Fprintf(w.err, "weir serve would not start here:\n%v\n", bad)
	}
	if s := file.Store; s != nil && !s.Memory {
		fmt.Fprintf(w.out, "while the %s store is away: %s\n", s.Kind(), withoutStore(*s))
	}
	if file.Bounds != (config.Bounds{}) {
		b := file.Bounds.WithDefaults(connlimit.Files())
		fmt.Fprintf(w.out, "at each listener: %d connections (%d of one address), %d requests in flight (%d of one caller, %d streams of one connection)\n",
			b.Connections, b.CallerConnections, b.Requests, b.CallerRequests, b.Streams)
	}
	if *try {
		return w.tell(serve.Try(ctx, file, serve.Options{Env: w.env}))
	}
	return nil
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// withoutStore says in a line what a process does without its store.
func withoutStore(s config.Store) string {
	outage := cmp.Or(s.Outage, fleet.DefaultOutage)
	first := fmt.Sprintf("each process goes on with its part of each limit for %v, ", outage)
	switch w := s.Without; {
	case w.Refuse:
		return first + "then it refuses calls; one that has never reached the store refuses them"
	case w.Share > 0:
		return first + fmt.Sprintf("then with %.4g%% of each limit; one that has never reached the store goes on with that (%d processes and more exceed a limit)", 100*w.Share, int(1/w.Share)+1)
	}
	return first + "and after that, too, which it announces (event, metric, status); one that has never reached the store refuses calls"
}

// tell says of everything that was tried how it is.
func (w world) tell(all []serve.Trial) error {
	bad := 0
	for _, t := range all {
		if t.Err != nil {
			fmt.Fprintf(w.err, "bad   %s: %v\n", t.Name, t.Err)
			bad++
			continue
		}
		fmt.Fprintf(w.out, "good  %s: %s\n", t.Name, t.Said)
		for _, text := range t.Warnings {
			fmt.Fprintf(w.out, "warn  %s: %s\n", t.Name, text)
		}
	}
	if bad > 0 {
		fmt.Fprintf(w.err, "%d of %d things that the file names cannot be used\n", bad, len(all))
		return cli.ErrFound
	}
	return nil
}
