package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/status"
)

func newBreaker(w world) *cobra.Command {
	c := asGroup(&cobra.Command{
		Use:   "breaker COMMAND",
		Short: "Open, close or reset the breaker of an upstream",
		Long: `Open, close or reset the breaker of an upstream. A breaker opens and closes by itself; use these commands to override it. If the
upstream has one breaker for each operation or key, --breaker-key selects one of them.`,
		Example: "  weir breaker open openai --for 5m",
	})
	for _, do := range []struct{ name, short, long, example string }{
		{"open", "Refuse all calls to an upstream", "Refuse all calls to an upstream, for a time or until the breaker is reset.", "  weir breaker open openai --for 5m"},
		{"close", "Let all calls to an upstream pass, even if they fail", "Let all calls to an upstream pass, even if they fail, until the breaker is reset.", "  weir breaker close openai"},
		{"reset", "Return a breaker to automatic operation", "Close a breaker, clear its counts, and let it open and close by itself again.", "  weir breaker reset s3 --breaker-key put"},
	} {
		sub := &cobra.Command{Use: do.name + " UPSTREAM", Short: do.short, Long: do.long, Example: do.example}
		running, asJSON := w.adminFlags(sub), jsonFlag(sub)
		key := sub.Flags().String("breaker-key", "", "only the breaker of `KEY`: an operation, or a value of the breaker's scope")
		length := new(time.Duration)
		if do.name == "open" {
			sub.Flags().DurationVar(length, "for", 0, "keep it open for `DURATION`, such as 5m; without it, until it is reset")
		}
		w.completeUpstream(sub, running)
		w.completeFlag(sub, "breaker-key", running, breakerKeys)
		sub.RunE = func(c *cobra.Command, args []string) error {
			order := map[string]any{"upstream": args[0], "do": c.Name()}
			if c.Flags().Changed("breaker-key") {
				order["key"] = *key
			}
			if c.Flags().Changed("for") {
				order["for"] = length.String()
			}
			return w.orderBreaker(c, running, order, *asJSON)
		}
		c.AddCommand(sub)
	}
	return c
}

// orderBreaker sends an order and prints the breakers of the upstream.
func (w world) orderBreaker(c *cobra.Command, running *admin, order map[string]any, asJSON bool) error {
	text, err := json.Marshal(order)
	if err != nil {
		return err
	}
	body, err := running.ask(c.Context(), http.MethodPost, "/v1/breaker", text)
	if err != nil {
		return err
	}
	if asJSON {
		_, err = w.out.Write(body)
		return err
	}
	var u status.Upstream
	if err := running.decode(body, &u); err != nil {
		return err
	}
	return status.PrintBreakers(w.out, u)
}
