package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/cli"
	runner "github.com/seed1158cd35/weir/sidecar/run"
)

func newRun(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "run [FLAGS] -- COMMAND [ARG...]",
		Short: "Run a command whose calls stay within limits",
		Long: `Run a command, and keep its calls to APIs within their limits. Environment variables direct the command to a proxy, and
to a certificate authority of this run. weir decrypts, limits and retries calls to the hosts of upstreams.
It does not read connections to other hosts. Without --config, every preset with hosts is an upstream: "weir presets github" shows one.

weir exits with the status of the command, or with 128 plus the number of the signal that ended it. If calls waited, weir
prints one line on standard error with the reasons. All runs of a user on a machine share their limits.`,
		Example: `  weir run -- curl https://api.github.com/repos/golang/go
  weir run --preset gemini-free -- python3 summarize.py
  weir run --run review-42 --budget "5 USD, 500 calls" -- claude -p "Review the last commit."`,
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("COMMAND is missing")
			}
			return nil
		},
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	path := configFlag(c, "")
	f := c.Flags()
	f.SetInterspersed(false)
	presets := f.StringArray("preset", nil, "use `PRESET` for its hosts, instead of any other preset; may be repeated")
	through := f.StringArray("through", nil, "do not decrypt connections to `HOST`, for example if the command pins its certificate; may be repeated")
	name := f.String("run", "", "`NAME` of the run; runs with the same name share one budget")
	budget := f.String("budget", "", "let the run use at most `AMOUNTS` in 24 hours: \"5 USD, 500 calls, 2000000 tokens\"")
	quiet := f.Bool("quiet", false, "print no summary")
	verbose := f.BoolP("verbose", "v", false, "print a summary even if no call waited")
	_ = c.RegisterFlagCompletionFunc("preset", completePreset) // the flag exists
	c.RunE = func(c *cobra.Command, args []string) error {
		buffers.CollectLess()
		status, err := runner.Run(c.Context(), runner.Options{
			Command: args, Config: *path, Presets: *presets, Through: *through, Run: *name, Budget: *budget, Quiet: *quiet, Verbose: *verbose,
			Env: os.Environ(), In: w.in, Out: w.out, Err: w.err, Version: cli.Version(),
		})
		return cli.Status(w.err, "weir run", status, err)
	}
	return c
}
