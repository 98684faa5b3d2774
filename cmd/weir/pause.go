package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// runPause runs weir pause and weir resume: it asks a running weir.
func runPause(ctx context.Context, w world, do string) error {
	f := w.flags(do, "UPSTREAM")
	running := w.adminFlags(f)
	limit := f.String("limit", "", "only calls that are charged to the limit")
	key := f.String("limit-key", "", "only those under the key; with -limit")
	pool := f.String("pool", "", "only calls of the pool, as weir status shows it")
	operation := f.String("operation", "", "only calls of the operation")
	here := f.Bool("here", false, "in this weir alone, and not in all that share its store")
	asJSON := f.Bool("json", false, "print JSON")
	length := new(time.Duration)
	if do == "pause" {
		cli.Duration(f, length, "for", "how `long`, such as 5m; without it until weir resume")
	}
	upstream, err := w.named(f, "name the upstream")
	if err != nil {
		return err
	}
	order := map[string]any{"upstream": upstream, "do": do}
	for name, value := range map[string]string{"limit": *limit, "limit-key": *key, "pool": *pool, "operation": *operation} {
		if given(f, name) {
			order[strings.TrimPrefix(name, "limit-")] = value
		}
	}
	if given(f, "for") {
		order["for"] = length.String()
	}
	if *here {
		order["here"] = true
	}
	text, err := json.Marshal(order)
	if err != nil {
		return err
	}
	body, err := running.ask(ctx, http.MethodPost, "/v1/pause", text)
	if err != nil {
		return err
	}
	if *asJSON {
		_, err = w.out.Write(body)
		return err
	}
	return w.tellPauses(do, body)
}

// tellPauses tells what an order has done.
func (w world) tellPauses(do string, body []byte) error {
	var r status.Resumed
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("read the answer: %w; is it a weir?", err)
	}
	if do == "resume" {
		fmt.Fprintf(w.out, "%d lifted\n", r.Lifted)
	}
	return status.PrintPauses(w.out, r.Upstream)
}

// named parses flags that stand before or after the name of an upstream.
func (w world) named(f *flag.FlagSet, what string) (name string, err error) {
	if err := w.parse(f, len(w.args)); err != nil {
		return "", err
	}
	if f.NArg() == 0 {
		fmt.Fprintf(w.err, "%s: %s\n", f.Name(), what)
		f.Usage()
		return "", cli.ErrUsage
	}
	name, w.args = f.Arg(0), f.Args()[1:]
	return name, w.parse(f, 0)
}

// given reports whether a flag was given.
func given(f *flag.FlagSet, name string) (yes bool) {
	f.Visit(func(x *flag.Flag) { yes = yes || x.Name == name })
	return yes
}
