package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"time"
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
  weir pause UPSTREAM            stop its calls, or those of a limit, key, pool or operation
  weir resume UPSTREAM           lift its pauses, whoever asked for them
  weir store init                make the store ready that a fleet shares
  weir static test "question"    which static answer a question finds, and why
  weir demo                      what callers suffer, directly and through weir
  weir chat-sim                  see a chat assistant that always answers
  weir version

weir COMMAND -h tells more.
`

// errUsage is an error that has been explained already.
var errUsage = errors.New("usage")

// errFound means that a command did its work, and what it found is bad.
var errFound = errors.New("found mistakes")

// run runs one command.
func run(ctx context.Context, w world) error {
	name := ""
	if len(w.args) > 0 {
		name, w.args = w.args[0], w.args[1:]
	}
	switch name {
	case "serve":
		return runServe(ctx, w)
	case "check":
		return check(ctx, w)
	case "status":
		return showStatus(ctx, w)
	case "pause", "resume":
		return runPause(ctx, w, name)
	case "store":
		return runStore(ctx, w)
	case "static":
		return runStatic(w)
	case "demo":
		return runDemo(ctx, w)
	case "chat-sim":
		return runChatSim(ctx, w)
	case "version", "-version", "--version":
		_, err := fmt.Fprintln(w.out, "weir", version())
		return err
	case "help", "-h", "-help", "--help":
		_, err := io.WriteString(w.out, usage)
		return err
	}
	if name != "" {
		fmt.Fprintf(w.err, "weir: there is no command %q\n\n", name)
	}
	_, _ = io.WriteString(w.err, usage)
	return errUsage
}

// exit is the status that a command ends with: 0 is well, 1 is not, 2 means that
// it was called wrongly.
func exit(err error, out io.Writer) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	case errors.Is(err, errFound):
		return 1
	}
	fmt.Fprintln(out, "weir:", err)
	return 1
}

// flags makes the flags of a command. Parse prints what is wrong by itself.
func (w world) flags(name, args string) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(w.err)
	f.Usage = func() {
		fmt.Fprintf(w.err, "usage: weir %s [flags] %s\n", name, args)
		f.PrintDefaults()
	}
	return f
}

// durationFlag is a flag for a length of time, which is what it is set to already by default.
func durationFlag(f *flag.FlagSet, to *time.Duration, name, usage string) {
	if *to != 0 {
		usage += fmt.Sprintf(" (default %v)", *to)
	}
	f.Func(name, usage, func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("want a number with a unit, such as 30s, 5m or 1h30m")
		}
		*to = d
		return nil
	})
}

// parse parses flags and bounds the arguments that may follow them.
func (w world) parse(f *flag.FlagSet, most int) error {
	if err := f.Parse(w.args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if f.NArg() > most {
		fmt.Fprintf(w.err, "weir %s: unexpected argument %q\n", f.Name(), f.Arg(most))
		f.Usage()
		return errUsage
	}
	return nil
}

// version is the version that the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
