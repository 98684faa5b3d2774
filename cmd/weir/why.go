package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// explain runs weir why: what became of the calls with an ID, and what to change if that was not wanted.
func explain(ctx context.Context, w world) error {
	f := w.flags("why", "ID\n\nID is the X-Correlation-Id of an answer, or the id of a log line. Kept are the latest calls that were\nrefused, failed or waited, and a sample of the others. Of others you are told what weir decided in their second.")
	a := w.adminFlags(f)
	raw := f.Bool("json", false, "print JSON")
	at := f.String("at", "", "when the call was made, such as 2006-01-02T15:04:05Z; an ID that weir has made says it itself")
	id, err := w.named(f, "name the call by its ID")
	if err != nil {
		return err
	}
	body, err := a.ask(ctx, "GET", "/v1/why/"+url.PathEscape(id)+instant(*at), nil)
	if err != nil {
		return err
	}
	var e status.Explained
	if err := json.Unmarshal(body, &e); err != nil {
		return fmt.Errorf("%s does not answer as weir does: %w", a.name(), err)
	}
	if slices.ContainsFunc(e.Calls, func(c status.Told) bool { return c.Call == nil }) {
		return fmt.Errorf("%s does not answer as weir does", a.name())
	}
	if *raw {
		_, err = w.out.Write(body)
		return err
	}
	_, err = fmt.Fprint(w.out, e.Text())
	return err
}

func instant(at string) string {
	if at == "" {
		return ""
	}
	return "?at=" + url.QueryEscape(at)
}
