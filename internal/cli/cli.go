// Package cli has common parts of the programs: flags, exit status, and version.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"time"
)

// ErrUsage is an error that was already printed.
var ErrUsage = errors.New("usage")

// ErrFound reports that a command has completed and found mistakes.
var ErrFound = errors.New("found mistakes")

// Exit returns the exit status of a program: 0 for success, 1 for failure, 2 for wrong usage. It writes an error to out unless
// it was already printed.
func Exit(program string, err error, out io.Writer) int {
	if s, ok := errors.AsType[status](err); ok {
		return int(s)
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		return 2
	case errors.Is(err, ErrFound):
		return 1
	}
	fmt.Fprintf(out, "%s: %v\n", program, err)
	return 1
}

// A status is the exit status of another program, which has printed the error.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Status returns an error with which Exit returns the status. It writes the other error to out, unless that is nil.
func Status(out io.Writer, program string, s int, err error) error {
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", program, err)
	}
	if s == 0 {
		return nil
	}
	return status(s)
}

// Flags returns the flags of a command, whose name begins with the program's name. Errors are written to out. args are the
// arguments in the usage line.
func Flags(command, args string, out io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() {
		fmt.Fprintf(out, "usage: %s [flags] %s\n", command, args)
		f.PrintDefaults()
	}
	return f
}

// Parse parses flags and bounds the number of arguments after them.
func Parse(f *flag.FlagSet, args []string, most int) error {
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return ErrUsage
	}
	if f.NArg() > most {
		fmt.Fprintf(f.Output(), "%s: unexpected argument %q\n", f.Name(), f.Arg(most))
		f.Usage()
		return ErrUsage
	}
	return nil
}

// Duration defines a duration flag. The value of to is its default.
func Duration(f *flag.FlagSet, to *time.Duration, name, usage string) {
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

// Version returns the version from which the program was built.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
