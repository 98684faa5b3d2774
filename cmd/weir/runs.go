package main

import (
	"encoding/json"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/status"
)

func newRuns(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "runs [NAME]",
		Short: "List the runs of agents, and what they used",
		Long: `List the latest runs of agents: calls, tokens, dollars, tools, refusals and remaining limits. NAME shows one run with
its limits for each tool. Each process counts its calls since its start, and keeps 200 runs.

Without --admin, it includes all running "weir run" commands.`,
		Example: `  weir runs
  weir runs review-42 --json`,
	}
	running, asJSON := w.adminFlags(c), jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		path := "/v1/runs"
		if len(args) > 0 {
			path += "?name=" + url.QueryEscape(args[0])
		}
		bodies, err := running.askAll(c.Context(), path)
		if err != nil {
			return err
		}
		all := status.Runs{Runs: []status.Run{}}
		for _, body := range bodies {
			var some status.Runs
			if err := running.decode(body, &some); err != nil {
				return err
			}
			all.Merge(some)
		}
		if *asJSON {
			e := json.NewEncoder(w.out)
			e.SetIndent("", "  ")
			return e.Encode(all)
		}
		return all.Print(w.out)
	}
	return c
}
