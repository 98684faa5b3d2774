package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/status"
)

func newBudget(w world) *cobra.Command {
	c := &cobra.Command{
		Use:     "budget COMMAND",
		Short:   "Change what remains of a budget",
		Long:    "Change what remains of a budget, a limit with unit: usd.",
		Example: "  weir budget give 5 --reason \"the model was mispriced\"",
	}
	asGroup(c)
	c.AddCommand(newBudgetGive(w))
	return c
}

func newBudgetGive(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "give USD",
		Short: "Give dollars of a budget back",
		Long: `Give dollars of a budget back to its present window, at most the dollars spent in it. The log records sender and reason. Budgets
that processes share cannot be given back.`,
		Example: `  weir budget give --key alice 5 --reason "the model was mispriced"`,
	}
	running, asJSON := w.adminFlagsWith(c, "cert-key"), jsonFlag(c)
	var o status.Giving
	f := c.Flags()
	f.StringVar(&o.Key, "key", "", "`KEY` of the budget, if it has a scope")
	name := f.String("limit", "", "`LIMIT`, or UPSTREAM/LIMIT, if several budgets have the key")
	f.StringVar(&o.Reason, "reason", "", "`REASON` for the log; required")
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.USD = args[0]; o.Reason == "" {
			return usagef("--reason is missing: it is written to the log")
		}
		if upstream, limit, both := strings.Cut(*name, "/"); both {
			o.Upstream, o.Limit = upstream, limit
		} else {
			o.Limit = *name
		}
		text, err := json.Marshal(o)
		if err != nil {
			return err
		}
		body, err := running.ask(c.Context(), http.MethodPost, "/v1/budget", text)
		if err != nil {
			return err
		}
		if *asJSON {
			_, err = w.out.Write(body)
			return err
		}
		var g status.Given
		if err := running.decode(body, &g); err != nil {
			return err
		}
		_, err = fmt.Fprintln(w.out, g.Text())
		return err
	}
	return c
}
