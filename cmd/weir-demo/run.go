package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/seed1158cd35/weir/internal/cli"
)

// A world is the environment of a command. Tests replace it.
type world struct {
	args []string
	out  io.Writer
	err  io.Writer
	env  func(string) (string, bool)
}

const usage = `weir-demo shows what weir does.

  weir-demo          simulated failures, with and without weir
  weir-demo chat     a chat assistant that always answers
  weir-demo version

"weir-demo -h" and "weir-demo chat -h" list the flags.
`

// run runs one command.
func run(ctx context.Context, w world) error {
	name := ""
	if len(w.args) > 0 {
		name = w.args[0]
	}
	switch name {
	case "chat":
		w.args = w.args[1:]
		return runChat(ctx, w)
	case "version":
		_, err := fmt.Fprintln(w.out, "weir-demo", cli.Version())
		return err
	case "help":
		_, err := io.WriteString(w.out, usage)
		return err
	}
	return runStories(ctx, w)
}

// parse reads the flags of a show and validates them with check. stay reports whether the show must continue after its end,
// because the output is a terminal.
func (w world) parse(f *flag.FlagSet, check func() error) (stay, colour bool, err error) {
	once := f.Bool("once", false, "exit at the end, even on a terminal")
	if err := cli.Parse(f, w.args, 0); err != nil {
		return false, false, err
	}
	if err := check(); err != nil {
		fmt.Fprintln(w.err, err)
		f.Usage()
		return false, false, cli.ErrUsage
	}
	return terminal(w.out) && !*once, w.coloured(), nil
}

func (w world) get(name string) string {
	if w.env == nil {
		return ""
	}
	v, _ := w.env(name)
	return v
}

// coloured reports whether out supports colors and the user wants them. Windows consoles need a setting before they interpret
// ANSI sequences.
func (w world) coloured() bool {
	return terminal(w.out) && runtime.GOOS != "windows" && w.get("TERM") != "dumb" && w.get("NO_COLOR") == ""
}

// terminal reports whether out is a terminal. The null device is also a character device, but not a terminal.
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
