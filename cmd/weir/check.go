package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

func newCheck(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report every mistake in a configuration file",
		Long: `Report every mistake in a configuration file, and in the files of prices and answers that it names. Without FILE, check
weir.yaml. With --connect, also connect to the store, the upstreams and everything else that the file names.

The exit status is 1 if there are mistakes.`,
		Example: `  weir check weir.yaml
  weir check --connect weir.yaml`,
		ValidArgsFunction: completeYAML,
	}
	path := configFlag(c, "weir.yaml")
	connect := c.Flags().Bool("connect", false, "also connect to everything that the file refers to")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			*path = args[0]
		}
		return w.check(c.Context(), *path, *connect)
	}
	return c
}

// configFlag adds --config.
func configFlag(c *cobra.Command, file string) *string {
	path := c.Flags().String("config", file, "configuration `FILE`")
	_ = c.MarkFlagFilename("config", "yaml", "yml") // the flag exists
	return path
}

func completeYAML(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []cobra.Completion{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// check prints the mistakes in a file.
func (w world) check(ctx context.Context, path string, connect bool) error {
	file, err := config.Load(path, w.env)
	if err == nil {
		err = serve.Check(file)
		if removed := file.Removed(); len(removed) > 0 {
			err = errors.Join(removed, err)
		}
	}
	if err != nil {
		fmt.Fprintln(w.err, err)
		return cli.ErrFound
	}
	fmt.Fprintf(w.out, "%s: good: %s, listening on %s\n", path, counted(len(file.Upstreams), "upstream"), file.Listen)
	for _, text := range serve.Warnings(file) {
		fmt.Fprintf(w.out, "warn  %s\n", text)
	}
	if bad := file.CheckEnv(w.env); bad != nil && !connect {
		fmt.Fprintf(w.err, "weir serve would not start in this environment:\n%v\n", bad)
	}
	if s := file.Store; s != nil && !s.Memory {
		fmt.Fprintf(w.out, "while the %s store is unreachable: %s\n", s.Kind(), withoutStore(*s))
	}
	if file.Bounds != (config.Bounds{}) {
		b := file.Bounds.WithDefaults(connlimit.Files())
		fmt.Fprintf(w.out, "each listener accepts %d connections (%d from one address) and %d requests in flight (%d from one caller, %d on one connection)\n",
			b.Connections, b.CallerConnections, b.Requests, b.CallerRequests, b.Streams)
	}
	if tables := tablesOf(file); len(tables) > 0 && !connect {
		fmt.Fprintf(w.out, "not checked without --connect: whether DynamoDB has the table %s and deletes its old items (TTL)\n", strings.Join(tables, " and the table "))
	}
	if connect {
		return w.tell(serve.Try(ctx, file, serve.Options{Env: w.env}))
	}
	return nil
}

// tablesOf returns the tables in DynamoDB that weir store init creates for a file.
func tablesOf(file *config.File) (tables []string) {
	if s := file.Store; s != nil && s.DynamoDB != nil {
		tables = append(tables, s.DynamoDB.Table)
	}
	if d := file.Deliveries; d != nil && d.AWS != nil {
		tables = append(tables, d.AWS.Table)
	}
	return tables
}

// counted returns a number with its noun.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// withoutStore describes what a process does while its store is unreachable.
func withoutStore(s config.Store) string {
	outage := cmp.Or(s.Outage, fleet.DefaultOutage)
	first := fmt.Sprintf("each process continues with its part of each limit for %v, ", outage)
	switch w := s.Without; {
	case w.Refuse:
		return first + "and then refuses calls; a process that has never reached the store refuses calls"
	case w.Share > 0:
		return first + fmt.Sprintf("and then with %.4g%% of each limit; a process that has never reached the store also uses that share (with %d or more processes, limits can be exceeded)", 100*w.Share, int(1/w.Share)+1)
	}
	return first + "and keeps using it afterwards (an event, a metric and weir status report this); a process that has never reached the store refuses calls"
}

// tell prints the result of each connection.
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
		fmt.Fprintf(w.err, "%d of %d connections failed\n", bad, len(all))
		return cli.ErrFound
	}
	return nil
}
