package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"

	"github.com/seed1158cd35/weir/internal/cli"
)

// A world is what a command may touch, so that tests can give it another.
type world struct {
	args []string
	in   io.Reader // nil for nothing
	out  io.Writer
	err  io.Writer
	env  func(string) (string, bool)

	seen func(*flag.FlagSet) // is given the flags of a command in place of its being run; nil to run it
}

// run runs one command.
func run(ctx context.Context, w world) error {
	name := ""
	if len(w.args) > 0 {
		name, w.args = w.args[0], w.args[1:]
	}
	for _, c := range commands() {
		if c.name == name || slices.Contains(c.also, name) {
			return c.run(ctx, w, name)
		}
	}
	if name != "" {
		fmt.Fprintf(w.err, "weir: there is no command %q\n\n", name)
	}
	_, _ = io.WriteString(w.err, usage())
	return cli.ErrUsage
}

func version(_ context.Context, w world, _ string) error {
	_, err := fmt.Fprintln(w.out, "weir", cli.Version())
	return err
}

func help(_ context.Context, w world, _ string) error {
	_, err := io.WriteString(w.out, usage())
	return err
}

// flags makes the flags of a command. Parse prints what is wrong by itself.
func (w world) flags(name, args string) *flag.FlagSet { return cli.Flags("weir "+name, args, w.err) }

// parse parses flags and bounds the arguments that may follow them. Every command calls it first.
func (w world) parse(f *flag.FlagSet, most int) error {
	if w.seen != nil {
		w.seen(f)
		return flag.ErrHelp
	}
	return cli.Parse(f, w.args, most)
}

// moved says where a command is that has left this program.
func moved(w world, name, now string) error {
	fmt.Fprintf(w.err, "weir: %s is a program of its own: %s\n(make demo builds and runs it, go install github.com/seed1158cd35/weir/cmd/weir-demo@latest installs it)\n", name, now)
	return cli.ErrUsage
}
