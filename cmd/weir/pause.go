package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// A pauseScope selects the calls of an upstream that a pause applies to.
type pauseScope struct {
	limit, key, pool, operation string
	here, json                  bool
	running                     *admin
}

func (w world) pauseFlags(c *cobra.Command) *pauseScope {
	s := &pauseScope{running: w.adminFlags(c)}
	f := c.Flags()
	f.StringVar(&s.limit, "limit", "", "only calls that are charged to `LIMIT`")
	f.StringVar(&s.key, "limit-key", "", "only `KEY` of the limit; needs --limit")
	f.StringVar(&s.pool, "pool", "", "only calls of `POOL`, as weir status shows it")
	f.StringVar(&s.operation, "operation", "", "only calls of `OPERATION`")
	f.BoolVar(&s.here, "here", false, "only in this weir, not in the others that share its store")
	f.BoolVar(&s.json, "json", false, "print JSON")
	w.completeUpstream(c, s.running)
	w.completeFlag(c, "limit", s.running, limitNames)
	w.completeFlag(c, "limit-key", s.running, limitKeys)
	w.completeFlag(c, "pool", s.running, limitKeys)
	w.completeFlag(c, "operation", s.running, breakerKeys)
	return s
}

func newPause(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "pause UPSTREAM",
		Short: "Stop calls to an upstream, or a part of them",
		Long: `Stop calls to an upstream, or to one limit, key, pool or operation of it. Calls wait for the end of the pause, but no longer than
max_wait. Then weir refuses them. The pause applies to every weir that shares the store, unless --here is given.`,
		Example: `  weir pause openai --for 5m
  weir pause s3 --limit tenant --limit-key acme`,
	}
	scope := w.pauseFlags(c)
	length := c.Flags().Duration("for", 0, "end the pause after `DURATION`, such as 5m; without it, only weir resume ends it")
	c.RunE = func(c *cobra.Command, args []string) error { return w.orderPause(c, scope, args[0], *length) }
	return c
}

func newResume(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "resume UPSTREAM",
		Short: "End pauses of an upstream",
		Long: `End the pauses of an upstream, or of one limit, key, pool or operation of it. This also ends pauses that the upstream
requested with Retry-After.`,
		Example: `  weir resume openai
  weir resume s3 --limit tenant`,
	}
	scope := w.pauseFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error { return w.orderPause(c, scope, args[0], 0) }
	return c
}

// orderPause sends the order of the command's name, and prints the remaining pauses.
func (w world) orderPause(c *cobra.Command, s *pauseScope, upstream string, length time.Duration) error {
	do := c.Name()
	order := map[string]any{"upstream": upstream, "do": do}
	for flag, field := range map[string]struct{ name, value string }{"limit": {"limit", s.limit}, "limit-key": {"key", s.key}, "pool": {"pool", s.pool}, "operation": {"operation", s.operation}} {
		if c.Flags().Changed(flag) { // an empty value also counts
			order[field.name] = field.value
		}
	}
	if c.Flags().Changed("for") {
		order["for"] = length.String()
	}
	if s.here {
		order["here"] = true
	}
	text, err := json.Marshal(order)
	if err != nil {
		return err
	}
	body, err := s.running.ask(c.Context(), http.MethodPost, "/v1/pause", text)
	if err != nil {
		return err
	}
	if s.json {
		_, err = w.out.Write(body)
		return err
	}
	var r status.Resumed
	if err := s.running.decode(body, &r); err != nil {
		return err
	}
	if do == "resume" {
		fmt.Fprintf(w.out, "pauses ended: %d\n", r.Lifted)
	}
	return status.PrintPauses(w.out, r.Upstream)
}
