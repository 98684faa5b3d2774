package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/status"
)

// showStatus prints what a running weir says of itself.
func showStatus(ctx context.Context, w world) error {
	f := w.flags("status", "")
	admin := f.String("admin", "127.0.0.1:8081", "the admin address of the running weir")
	asJSON := f.Bool("json", false, "print JSON")
	if err := w.parse(f, 0); err != nil {
		return err
	}
	*admin = strings.TrimSuffix(strings.TrimPrefix(*admin, "http://"), "/")
	body, err := fetch(ctx, "http://"+*admin+"/v1/status")
	if err != nil {
		return fmt.Errorf("ask %s: %w; is weir serve running, with this admin address?", *admin, err)
	}
	if *asJSON {
		_, err = w.out.Write(body)
		return err
	}
	var r status.Report
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("read the answer of %s: %w; is it a weir?", *admin, err)
	}
	return status.Print(w.out, r)
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answered %s", resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, 64<<20))
}
