package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// showStatus prints what a running weir says of itself.
func showStatus(ctx context.Context, w world) error {
	f := w.flags("status", "")
	running := w.adminFlags(f)
	asJSON := f.Bool("json", false, "print JSON")
	if err := w.parse(f, 0); err != nil {
		return err
	}
	body, err := running.ask(ctx, http.MethodGet, "/v1/status", nil)
	if err != nil {
		return err
	}
	if *asJSON {
		_, err = w.out.Write(body)
		return err
	}
	var r status.Report
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("read the answer of %s: %w; is it a weir?", running.name(), err)
	}
	return status.Print(w.out, r)
}
