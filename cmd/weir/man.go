package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func newMan(w world) *cobra.Command {
	return &cobra.Command{
		Use:     "man",
		Short:   "Write the manual page weir(1)",
		Long:    "Write the manual page weir(1), in the format of man.",
		Example: "  weir man > /usr/share/man/man1/weir.1",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := w.out.Write(manual(c.Root()))
			return err
		},
	}
}

// manual returns weir(1), in the macros of man.
func manual(root *cobra.Command) []byte {
	var b strings.Builder
	b.WriteString(".TH WEIR 1 \"\" weir \"weir\"\n.SH NAME\nweir \\- keep programs inside the limits of the APIs they call\n.SH SYNOPSIS\n.B weir\n.I COMMAND\n[flags] [arguments]\n")
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n.SH COMMANDS\n", roff(root.Long))
	for c := range leaves(root) {
		fmt.Fprintf(&b, ".SS %s\n%s\n", roff(usageLine(c)), roff(c.Long))
		for f := range flags(c) {
			value, about := pflag.UnquoteUsage(f)
			fmt.Fprintf(&b, ".TP\n.BR \\-\\-%s \" %s\"\n%s\n", roff(f.Name), roff(value), roff(about+defaultOf(f)))
		}
	}
	fmt.Fprintf(&b, ".SH EXIT STATUS\n0 for success, 1 for failure, 2 for a wrong command line.\n.SH ENVIRONMENT\n.TP\n.B %s\nthe token for the admin listener of a running weir\n", tokenVariable)
	b.WriteString(".SH FILES\n.TP\n.I /etc/weir/weir.yaml\nthe configuration of the service, with\n.I /etc/weir/environment\nfor secrets\n")
	return []byte(b.String())
}

// leaves returns the commands without subcommands, in the order of the help, except hidden ones.
func leaves(c *cobra.Command) func(yield func(*cobra.Command) bool) {
	return func(yield func(*cobra.Command) bool) {
		for _, sub := range c.Commands() {
			if sub.Hidden {
				continue
			}
			if !sub.HasSubCommands() {
				if !yield(sub) {
					return
				}
				continue
			}
			for inner := range leaves(sub) {
				if !yield(inner) {
					return
				}
			}
		}
	}
}

// flags returns the flags of a command, except --help.
func flags(c *cobra.Command) func(yield func(*pflag.Flag) bool) {
	return func(yield func(*pflag.Flag) bool) {
		more := true
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if more && f.Name != "help" && !f.Hidden {
				more = yield(f)
			}
		})
	}
}

// usageLine returns the usage line of a command.
func usageLine(c *cobra.Command) string { return c.Parent().CommandPath() + " " + c.Use }

// defaultOf returns the default of a flag, in words.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return ""
	}
	return " (default " + f.DefValue + ")"
}

// roff escapes a text so that man prints it unchanged.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
