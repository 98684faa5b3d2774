package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed1158cd35/weir/internal/cli"
)

// A world is the environment of a command. Tests replace it.
type world struct {
	args []string
	in   io.Reader // nil means no input
	out  io.Writer
	err  io.Writer
	env  func(string) (string, bool)
}

// run runs the command that the arguments name.
func run(ctx context.Context, w world) error {
	root := newRoot(w)
	root.SetArgs(reportUnknown(root, doubleDashes(root, w.args)))
	c, err := root.ExecuteContextC(ctx)
	if u, wrong := errors.AsType[*usageError](err); wrong {
		fmt.Fprintf(w.err, "%s: %s\nusage: %s\n\"%s --help\" explains it.\n", c.CommandPath(), u.text, c.UseLine(), c.CommandPath())
		return cli.ErrUsage
	}
	return err
}

// A usageError reports a command line that cannot be run.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// reportUnknown removes --help from the arguments if they name an unknown command. cobra would otherwise print the help of the
// parent command and succeed.
func reportUnknown(root *cobra.Command, args []string) []string {
	c, rest, err := root.Find(args)
	if err != nil || !c.HasSubCommands() || len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return args
	}
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return arg == "--help" || arg == "-h" })
}

// doubleDashes returns the arguments with each -flag as --flag, because Go's flag package accepts both. Values of flags, single
// letters and arguments after -- are unchanged.
func doubleDashes(root *cobra.Command, args []string) []string {
	c, out := root, []string{} // not nil: cobra would take the arguments of the process
	value := false             // the next argument is the value of a flag
	for i, arg := range args {
		name, dashed := strings.CutPrefix(arg, "-")
		switch {
		case value:
			value = false
		case arg == "--":
			return append(out, args[i:]...)
		case !dashed:
			if sub := subcommand(c, arg); sub != nil {
				c = sub
			}
		default:
			name = strings.TrimPrefix(name, "-")
			if len(name) > 1 && isLetter(name[0]) {
				arg = "--" + name
			}
			name, _, given := strings.Cut(name, "=")
			value = !given && takesValue(c.Flag(name))
		}
		out = append(out, arg)
	}
	return out
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

func takesValue(f *pflag.Flag) bool { return f != nil && f.NoOptDefVal == "" }

func subcommand(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name || sub.HasAlias(name) {
			return sub
		}
	}
	return nil
}

// flagError describes the error in a flag, and suggests similar flags.
func flagError(c *cobra.Command, err error) error {
	if verb := c.Flags().Args(); c.HasSubCommands() && len(verb) > 0 { // the flags belong to an unknown command
		return c.ValidateArgs(verb)
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return usagef("unknown flag --%s%s", e.GetSpecifiedName(), didYouMean("--", similarFlags(c, e.GetSpecifiedName())))
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		what, _ := pflag.UnquoteUsage(e.GetFlag())
		return usagef("--%s needs a value: --%s %s", e.GetFlag().Name, e.GetFlag().Name, what)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usagef("--%s %q: %s", e.GetFlag().Name, e.GetValue(), wanted(e))
	}
	return usagef("%v", err)
}

// wanted describes the valid values of a flag.
func wanted(e *pflag.InvalidValueError) string {
	switch e.GetFlag().Value.Type() {
	case "int", "int64":
		return "want a whole number"
	case "float64":
		return "want a number"
	case "bool":
		return "want true or false"
	case "duration":
		return "want a number with a unit, such as 30s, 5m or 1h30m"
	}
	return e.Unwrap().Error()
}

// similarFlags returns the flags of a command that resemble a name.
func similarFlags(c *cobra.Command, name string) []string {
	var all []string
	c.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	return similar(name, all)
}

// similar returns the names that resemble a name. cobra compares names of commands, so each name becomes a command.
func similar(name string, all []string) []string {
	commands := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, other := range all {
		commands.AddCommand(&cobra.Command{Use: other, Run: func(*cobra.Command, []string) {}})
	}
	return commands.SuggestionsFor(name)
}

func didYouMean(dashes string, names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "; did you mean " + dashes + strings.Join(names, " or "+dashes) + "?"
}

// checkArguments compares the arguments of a command with its usage line. A name in capitals is one argument, brackets make it
// optional, and ... repeats it.
func checkArguments(c *cobra.Command, args []string) error {
	most := 0
	for _, name := range strings.Fields(c.Use)[1:] {
		optional, repeats := strings.HasPrefix(name, "["), strings.Contains(name, "...")
		if most >= len(args) && !optional {
			return usagef("%s is missing", strings.TrimSuffix(name, "..."))
		}
		if most++; repeats {
			return nil
		}
	}
	if len(args) > most {
		return usagef("unexpected argument %q", args[most])
	}
	return nil
}
