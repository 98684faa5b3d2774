package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/status"
)

func newReload(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "reload",
		Short: "Make a running weir read its configuration file again",
		Long: `Make a running weir read its configuration file again. If the file has mistakes, nothing changes, the mistakes are printed, and
the exit status is 1.`,
		Example: "  weir reload",
	}
	running, asJSON := w.adminFlags(c), jsonFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		body, err := running.ask(c.Context(), http.MethodPost, "/v1/reload", []byte("{}"))
		if err != nil {
			return err
		}
		if *asJSON {
			_, err = w.out.Write(body)
			return err
		}
		var file status.Config
		if err := running.decode(body, &file); err != nil {
			return err
		}
		file.Print(w.out)
		return nil
	}
	return c
}
