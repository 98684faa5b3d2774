package main

import (
	"context"
	"flag"
	"fmt"
	"io"

	"github.com/seed1158cd35/weir/internal/cli"
)

// A world is what a command may touch, so that tests can give it another.
type world struct {
	args []string
	out  io.Writer
	err  io.Writer
	env  func(string) (string, bool)
}

const usage = `weir keeps programs inside the limits of the APIs they call.

  weir serve -config weir.yaml   run the sidecar
  weir check weir.yaml           say everything that is wrong with a file
  weir check -connect weir.yaml  and try the store, the upstreams and all else that it names
  weir status                    what a running weir is doing
  weir reload                    have a running weir read its file again
  weir why ID                    what became of a call, and what to change
  weir pause UPSTREAM            stop its calls, or those of a limit, key, pool or operation
  weir resume UPSTREAM           lift its pauses, whoever asked for them
  weir dead list | show | redrive | drop   what could not be delivered, and what becomes of it
  weir store init                make the store ready that a fleet shares
  weir export prometheus-rules   alerts, dashboards and alarms, as files for others; weir export -h names all
  weir static test "question"    which static answer a question finds, and why
  weir version

weir COMMAND -h tells more.
`

// run runs one command.
func run(ctx context.Context, w world) error {
	name := ""
	if len(w.args) > 0 {
		name, w.args = w.args[0], w.args[1:]
	}
	if command := commands[name]; command != nil {
		return command(ctx, w, name)
	}
	if name != "" {
		fmt.Fprintf(w.err, "weir: there is no command %q\n\n", name)
	}
	_, _ = io.WriteString(w.err, usage)
	return cli.ErrUsage
}

// commands by their names.
var commands = map[string]func(ctx context.Context, w world, name string) error{
	"serve":  func(ctx context.Context, w world, _ string) error { return runServe(ctx, w) },
	"check":  func(ctx context.Context, w world, _ string) error { return check(ctx, w) },
	"status": func(ctx context.Context, w world, _ string) error { return showStatus(ctx, w) },
	"reload": func(ctx context.Context, w world, _ string) error { return runReload(ctx, w) },
	"pause":  runPause,
	"resume": runPause,
	"dead":   func(ctx context.Context, w world, _ string) error { return runDead(ctx, w) },
	"why":    func(ctx context.Context, w world, _ string) error { return explain(ctx, w) },
	"store":  func(ctx context.Context, w world, _ string) error { return runStore(ctx, w) },
	"export": func(_ context.Context, w world, _ string) error { return export(w) },
	"static": func(_ context.Context, w world, _ string) error { return runStatic(w) },

	"demo":     func(_ context.Context, w world, name string) error { return moved(w, name, "weir-demo") },
	"chat-sim": func(_ context.Context, w world, name string) error { return moved(w, name, "weir-demo chat") },

	"version": version, "-version": version, "--version": version,
	"help": help, "-h": help, "-help": help, "--help": help,
}

func version(_ context.Context, w world, _ string) error {
	_, err := fmt.Fprintln(w.out, "weir", cli.Version())
	return err
}

func help(_ context.Context, w world, _ string) error {
	_, err := io.WriteString(w.out, usage)
	return err
}

// flags makes the flags of a command. Parse prints what is wrong by itself.
func (w world) flags(name, args string) *flag.FlagSet { return cli.Flags("weir "+name, args, w.err) }

// parse parses flags and bounds the arguments that may follow them.
func (w world) parse(f *flag.FlagSet, most int) error { return cli.Parse(f, w.args, most) }

// moved says where a command is that has left this program.
func moved(w world, name, now string) error {
	fmt.Fprintf(w.err, "weir: %s is a program of its own: %s\n(make demo builds and runs it, go install github.com/seed1158cd35/weir/cmd/weir-demo@latest installs it)\n", name, now)
	return cli.ErrUsage
}
