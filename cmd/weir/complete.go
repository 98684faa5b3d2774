package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// completionTimeout bounds how long a shell waits for the names of a running weir.
const completionTimeout = time.Second

// upstreams returns the upstreams of the running weir, for completion. If none runs, it returns those of weir.yaml, with only
// their names.
func (w world) upstreams(ctx context.Context, running *admin) []status.Upstream {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var r status.Report
	if running.read(ctx, "/v1/status", &r) == nil {
		return r.Upstreams
	}
	if file, err := config.Load("weir.yaml", w.env); err == nil {
		for i := range file.Upstreams {
			r.Upstreams = append(r.Upstreams, status.Upstream{Name: file.Upstreams[i].Name})
		}
	}
	return r.Upstreams
}

// completeUpstream completes the one argument of a command with the names of upstreams.
func (w world) completeUpstream(c *cobra.Command, running *admin) {
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return w.valuesOf(c, running, nil, upstreamName), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag completes a flag with values of the upstream that is the command's argument, or of all upstreams.
func (w world) completeFlag(c *cobra.Command, flag string, running *admin, values func(*status.Upstream) []string) {
	complete := func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return w.valuesOf(c, running, args, values), cobra.ShellCompDirectiveNoFileComp
	}
	_ = c.RegisterFlagCompletionFunc(flag, complete) // it fails only for an unknown flag
}

func (w world) valuesOf(c *cobra.Command, running *admin, args []string, values func(*status.Upstream) []string) (found []cobra.Completion) {
	for _, u := range w.upstreams(c.Context(), running) {
		if len(args) == 0 || args[0] == u.Name {
			found = append(found, values(&u)...)
		}
	}
	slices.Sort(found)
	return slices.DeleteFunc(slices.Compact(found), func(s string) bool { return s == "" })
}

func upstreamName(u *status.Upstream) []string { return []string{u.Name} }

func limitNames(u *status.Upstream) (names []string) {
	for i := range u.Limits {
		names = append(names, u.Limits[i].Name)
	}
	return names
}

func limitKeys(u *status.Upstream) (keys []string) {
	for i := range u.Limits {
		keys = append(keys, u.Limits[i].Key)
	}
	return keys
}

func breakerKeys(u *status.Upstream) (keys []string) {
	for i := range u.Breakers {
		keys = append(keys, u.Breakers[i].Key)
	}
	return keys
}

func completeFixed(c *cobra.Command, flag string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}
