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

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/observe/trace/look"
	"github.com/seed1158cd35/weir/observe/trace/otlp/xray"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// showTrace runs weir trace: where the time of a trace went, and what went wrong.
func showTrace(ctx context.Context, w world) error {
	f := w.flags("trace", "ID\n\nID is that of a trace: 32 hexadecimal digits, or as X-Ray writes it. It is looked up in X-Ray, in the\nregion of traces.region in the file, or of -xray.")
	file := f.String("config", "weir.yaml", "the file with traces")
	region := f.String("xray", "", "look in X-Ray of this `REGION`")
	at := f.String("at", "", "when the trace began, such as 2006-01-02T15:04:05Z, if its ID does not say so")
	patience := f.Duration("wait", time.Minute, "how long to wait for X-Ray to fetch it from logs")
	raw := f.Bool("json", false, "print JSON")
	name, err := w.named(f, "name the trace by its ID")
	if err != nil {
		return err
	}
	id, err := trace.ParseID(name)
	if err != nil {
		return err
	}
	about := look.About(id, time.Now())
	if *at != "" {
		if about, err = time.Parse(time.RFC3339, *at); err != nil {
			return errors.New("-at: want a time such as 2006-01-02T15:04:05Z")
		}
	}
	if *region == "" {
		if *region, err = w.tracesRegion(*file, given(f, "config")); err != nil {
			return err
		}
	}
	from, err := w.source(ctx, *region)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *patience)
	defer cancel()
	t, err := from.Find(ctx, id, about)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	if *raw {
		return json.NewEncoder(w.out).Encode(t)
	}
	return t.Write(w.out)
}

// tracesRegion returns the region of X-Ray that the file sends traces to.
func (w world) tracesRegion(file string, must bool) (string, error) {
	c, err := config.Load(file, w.env)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !must:
		fmt.Fprintln(w.err, "weir trace: name the region with -xray REGION, or a file with traces.region")
		return "", cli.ErrUsage
	case err != nil:
		return "", err
	case c.Traces == nil:
		return "", fmt.Errorf("%s has no traces: name the region with -xray REGION", file)
	case c.Traces.Region == "":
		return "", fmt.Errorf("%s sends traces to %s, and weir trace reads only X-Ray: look the ID up in the receiver's own page, or name the region with -xray REGION", file, c.Traces.URL)
	}
	return c.Traces.Region, nil
}

// source returns X-Ray of a region.
func (w world) source(ctx context.Context, region string) (look.Source, error) {
	cfg, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithRegion(region))
	if err != nil {
		return nil, err
	}
	special, _ := w.env("AWS_ENDPOINT_URL_XRAY")
	all, _ := w.env("AWS_ENDPOINT_URL")
	return look.XRay{API: &xray.API{AWS: cfg, URL: cmp.Or(special, all)}}, nil
}
