package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/status"
)

func newStatus(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the limits, breakers, pauses and queues of a running weir",
		Long:  "Show the limits, breakers, pauses and queues of a running weir, once. \"weir top\" shows them live.",
		Example: `  weir status
  weir status --admin 10.0.0.7:8081 --json`,
	}
	running, asJSON := w.adminFlags(c), jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		body, err := running.ask(c.Context(), http.MethodGet, "/v1/status", nil)
		if err != nil {
			return err
		}
		if *asJSON {
			_, err = w.out.Write(body)
			return err
		}
		var r status.Report
		if err := running.decode(body, &r); err != nil {
			return err
		}
		return status.Print(w.out, r)
	}
	return c
}
