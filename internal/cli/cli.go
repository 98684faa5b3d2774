// Package cli is what the programs of weir have in common: flags, how they end, and their version.
package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime/debug"
	"time"
)

// ErrUsage is an error that has been explained already.
var ErrUsage = errors.New("usage")

// ErrFound means that a command did its work, and what it found is bad.
var ErrFound = errors.New("found mistakes")

// Exit is the status that a program ends with: 0 is well, 1 is not, 2 means that it was called
// wrongly. An error that nobody has explained yet is written to out.
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

// A status is the exit status of another program, which explained it.
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

// Flags makes the flags of a command, whose name begins with that of the program. What is wrong with
// them is written to out; args is how usage calls the arguments that follow.
func Flags(command, args string, out io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(command, flag.ContinueOnError)
	f.SetOutput(out)
	f.Usage = func() {
		fmt.Fprintf(out, "usage: %s [flags] %s\n", command, args)
		f.PrintDefaults()
	}
	return f
}

// Parse parses flags and bounds the arguments that may follow them.
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

// Duration is a flag for a length of time, which is what it is set to already by default.
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

// Version is the version that the program was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
