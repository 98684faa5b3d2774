package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

func newStore(w world) *cobra.Command {
	c := asGroup(&cobra.Command{
		Use:     "store COMMAND",
		Short:   "Prepare the store that a fleet shares",
		Long:    "Prepare the store that a fleet shares.",
		Example: "  weir store init --config weir.yaml",
	})
	initialize := &cobra.Command{
		Use:   "init",
		Short: "Prepare a new store",
		Long: `Prepare the store of a configuration file: marks in Redis, tables in DynamoDB and PostgreSQL, queues in SQS. Run it
once for a new store. Otherwise weir treats the empty store as one that has lost its data, and grants fewer units at first.`,
		Example: "  weir store init --config weir.yaml",
	}
	path := configFlag(initialize, "weir.yaml")
	initialize.RunE = func(c *cobra.Command, _ []string) error {
		file, err := config.Load(*path, w.env)
		if err != nil {
			return err
		}
		if d := file.Deliveries; file.Store == nil && !d.InFleet() && (d == nil || d.Requests == nil) {
			return fmt.Errorf("%s: nothing to prepare: the file has no store, no deliveries in postgres or aws, and no queue of requests", *path)
		}
		return serve.Init(c.Context(), w.out, file, serve.Options{Env: w.env})
	}
	c.AddCommand(initialize)
	return c
}
