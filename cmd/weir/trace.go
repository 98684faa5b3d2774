package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/observe/trace/look"
	"github.com/seed1158cd35/weir/observe/trace/otlp/xray"
	"github.com/seed1158cd35/weir/sidecar/config"
)

func newTrace(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace ID",
		Short: "Show how long each part of a trace took, from X-Ray",
		Long: `Show how long each part of a trace took, and the error if it failed. ID has 32 hexadecimal digits, or is in X-Ray's format. weir
looks up the trace in X-Ray, in the region that --xray or traces.region in the configuration file names.`,
		Example: "  weir trace 6553f100000000000000000000000002 --xray eu-west-1",
	}
	f := c.Flags()
	file := configFlag(c, "weir.yaml")
	region := f.String("xray", "", "look in X-Ray in `REGION`")
	at := f.String("at", "", "`TIME` when the trace began, such as 2006-01-02T15:04:05Z; most IDs contain it")
	patience := f.Duration("wait", time.Minute, "wait at most `DURATION` until X-Ray has the trace")
	asJSON := jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := trace.ParseID(args[0])
		if err != nil {
			return usagef("%v", err)
		}
		about := look.About(id, time.Now())
		if *at != "" {
			if about, err = time.Parse(time.RFC3339, *at); err != nil {
				return usagef("--at %q: want a time such as 2006-01-02T15:04:05Z", *at)
			}
		}
		if *region == "" {
			if *region, err = w.tracesRegion(*file, f.Changed("config")); err != nil {
				return err
			}
		}
		from, err := w.source(c.Context(), *region)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(c.Context(), *patience)
		defer cancel()
		t, err := from.Find(ctx, id, about)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if *asJSON {
			return json.NewEncoder(w.out).Encode(t)
		}
		return t.Write(w.out)
	}
	return c
}

// tracesRegion returns the region of X-Ray that the file sends traces to.
func (w world) tracesRegion(file string, must bool) (string, error) {
	c, err := config.Load(file, w.env)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !must:
		return "", usagef("the region is missing: use --xray REGION, or --config FILE with traces.region")
	case err != nil:
		return "", err
	case c.Traces == nil:
		return "", fmt.Errorf("%s has no traces: name the region with --xray REGION", file)
	case c.Traces.Region == "":
		return "", fmt.Errorf("%s sends traces to %s, and weir trace reads only X-Ray: look up the ID in the receiver's user interface, or name the region with --xray REGION", file, c.Traces.URL)
	}
	return c.Traces.Region, nil
}

// source returns the X-Ray API of a region.
func (w world) source(ctx context.Context, region string) (look.Source, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(region))
	if err != nil {
		return nil, err
	}
	special, _ := w.env("AWS_ENDPOINT_URL_XRAY")
	all, _ := w.env("AWS_ENDPOINT_URL")
	return look.XRay{API: &xray.API{AWS: cfg, URL: cmp.Or(special, all)}}, nil
}
