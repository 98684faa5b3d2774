package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/status"
)

func newWhy(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "why ID",
		Short: "Explain what happened to a call, and what to change",
		Long: `Explain what happened to a call, and which setting to change. ID is the X-Correlation-Id of a response, or the id of a log line.

weir keeps the latest calls that were refused, failed or waited, and a sample of the others. For any other call, it shows
the decisions of the same second.`,
		Example: `  weir why 01JZ4T2M8Q
  weir why my-request-7 --at 2026-11-29T12:30:00Z`,
	}
	running, asJSON := w.adminFlags(c), jsonFlag(c)
	at := c.Flags().String("at", "", "`TIME` of the call, such as 2006-01-02T15:04:05Z; not needed for an ID that weir generated")
	c.RunE = func(c *cobra.Command, args []string) error {
		query := ""
		if *at != "" {
			query = "?at=" + url.QueryEscape(*at)
		}
		body, err := running.ask(c.Context(), http.MethodGet, "/v1/why/"+url.PathEscape(args[0])+query, nil)
		if err != nil {
			return err
		}
		var e status.Explained
		err = running.decode(body, &e)
		if err == nil && slices.ContainsFunc(e.Calls, func(c status.Told) bool { return c.Call == nil }) {
			err = running.notWeir()
		}
		if err != nil {
			return err
		}
		if *asJSON {
			_, err = w.out.Write(body)
			return err
		}
		_, err = fmt.Fprint(w.out, e.Text())
		return err
	}
	return c
}
