package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/internal/cli"
)

// Groups of commands in the help of weir.
const (
	groupRun     = "run"
	groupOperate = "operate"
	groupFiles   = "files"
)

func init() { cobra.EnableCommandSorting = false } // applies to all commands of the process

// newRoot returns weir with all of its commands. Help, completions, the manual and docs/reference/cli.md are generated from
// them.
func newRoot(w world) *cobra.Command {
	root := &cobra.Command{
		Use:   "weir COMMAND",
		Short: "Keep programs inside the limits of the APIs they call",
		Long: `weir keeps programs inside the limits of the APIs they call. It limits the rate of calls, retries calls that can succeed later,
and stops calls to an API that is down.`,
		Example: `  weir init openai
  weir serve weir.yaml`,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	version := root.Flags().Bool("version", false, "print the version of weir")
	asGroup(root)
	needsCommand := root.RunE
	root.RunE = func(c *cobra.Command, args []string) error {
		if *version {
			return w.printVersion()
		}
		return needsCommand(c, args)
	}
	root.SetOut(w.out)
	root.SetErr(w.err)
	root.SetFlagErrorFunc(flagError)
	standard := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error { // a template would keep all methods of all types in the binary
		out := c.OutOrStderr()
		var text strings.Builder
		c.SetOut(&text)
		err := standard(c)
		c.SetOut(out)
		// The line above the first one contains COMMAND.
		_, _ = io.WriteString(out, strings.NewReplacer("\n  "+c.CommandPath()+" [command]", "", "[command]", "COMMAND").Replace(text.String()))
		return err
	})
	root.AddGroup(&cobra.Group{ID: groupRun, Title: "Run weir:"}, &cobra.Group{ID: groupOperate, Title: "Inspect and control a running weir:"},
		&cobra.Group{ID: groupFiles, Title: "Write files for weir and other programs:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, c := range commands {
			c.GroupID = group
		}
		root.AddCommand(commands...)
	}
	add(groupRun, newInit(w), newPresets(w), newRun(w), newServe(w), newCheck(w), newSim(w), newStore(w))
	add(groupOperate, newStatus(w), newTop(w), newRuns(w), newWhy(w), newTrace(w), newPause(w), newResume(w), newBreaker(w), newBudget(w), newReload(w), newDead(w))
	add(groupFiles, newExport(w), newLearn(w), newStatic(w), newCompletion(w), newMan(w))
	root.AddCommand(newVersion(w), newMoved("demo", "weir-demo"), newMoved("chat-sim", "weir-demo chat"))
	root.SetHelpCommand(newHelp())
	root.InitDefaultHelpCmd()
	prepare(root)
	return root
}

// prepare sets the properties that all commands share.
func prepare(c *cobra.Command) {
	if c.Args == nil {
		c.Args = checkArguments
	}
	if c.ValidArgsFunction == nil {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, sub := range c.Commands() {
		prepare(sub)
	}
}

// asGroup creates a command that requires a subcommand.
func asGroup(c *cobra.Command) *cobra.Command {
	c.DisableFlagsInUseLine = true
	c.SuggestionsMinimumDistance = 2
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usagef("unknown command %q%s", args[0], didYouMean("", c.SuggestionsFor(args[0])))
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		c.SetOut(c.ErrOrStderr())
		_ = c.Help()
		return cli.ErrUsage
	}
	return c
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND...]",
		Short:   "Explain a command",
		Long:    "Explain a command. \"weir COMMAND --help\" does the same.",
		Example: "  weir help dead redrive",
		ValidArgsFunction: func(c *cobra.Command, args []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
			if of, _, err := c.Root().Find(args); err == nil {
				for _, sub := range of.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, cobra.CompletionWithDesc(sub.Name(), sub.Short))
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			of := c.Root()
			for _, name := range args {
				sub := subcommand(of, name)
				if sub == nil {
					return usagef("unknown command %q%s", strings.Join(args, " "), didYouMean("", of.SuggestionsFor(name)))
				}
				of = sub
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

func newVersion(w world) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of weir",
		Long:    "Print the version of weir. \"weir --version\" does the same.",
		Example: "  weir version",
		RunE:    func(*cobra.Command, []string) error { return w.printVersion() },
	}
}

func (w world) printVersion() error {
	_, err := fmt.Fprintln(w.out, "weir", cli.Version())
	return err
}

// newMoved returns a hidden command that names the program that replaced it.
func newMoved(name, now string) *cobra.Command {
	return &cobra.Command{
		Use: name, Hidden: true, DisableFlagParsing: true, Args: cobra.ArbitraryArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("%s is now the program %s: \"make demo\" builds and runs it, \"go install github.com/seed1158cd35/weir/cmd/weir-demo@latest\" installs it", name, now)
		},
	}
}
