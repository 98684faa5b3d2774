package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// runReload has a running weir read its file again, and ends well if that went well.
func runReload(ctx context.Context, w world) error {
	f := w.flags("reload", "")
	running := w.adminFlags(f)
	asJSON := f.Bool("json", false, "print JSON")
	if err := w.parse(f, 0); err != nil {
		return err
	}
	body, err := running.ask(ctx, http.MethodPost, "/v1/reload", []byte("{}"))
	if err != nil {
		return err
	}
	if *asJSON {
		_, err = w.out.Write(body)
		return err
	}
	var c status.Config
	if err := json.Unmarshal(body, &c); err != nil {
		return fmt.Errorf("read the answer: %w; is it a weir?", err)
	}
	c.Print(w.out)
	return nil
}
