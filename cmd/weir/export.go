package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/observe/rules"
	sideexport "github.com/seed1158cd35/weir/sidecar/export"
)

// An exported is a file that is made for somebody else's program. declare adds its flags, and gives what writes the
// file once they are parsed.
type exported struct {
	name, about string
	declare     func(f *flag.FlagSet) func(context.Context, world) ([]byte, error)
}

var exports = []exported{
	{"prometheus-rules", "alerts, as a rule file of Prometheus", func(f *flag.FlagSet) func(context.Context, world) ([]byte, error) {
		var o rules.Options
		f.StringVar(&o.Job, "job", "weir", "the job that Prometheus scrapes weir under")
		f.StringVar(&o.Runbooks, "runbooks", "", "where docs/runbooks can be read; the repository if there is none")
		names := recorded{all: rules.NamesOfS3()}
		f.Var(&names, "record", "`UPSTREAM` whose requests, errors and latency by operation are recorded under other names, UPSTREAM=PREFIX or UPSTREAM=LATENCY,REQUESTS,ERRORS; several times for several, none for none; s3 if it is left out")
		f.Float64Var(&o.Cost, "cost-per-hour", 0, "an alert when models cost more in an hour; 0 for none")
		return func(_ context.Context, w world) ([]byte, error) {
			if o.Cost < 0 || strings.ContainsAny(o.Job, "\"\\\n") {
				fmt.Fprintln(w.err, "weir export prometheus-rules: want a job without quotes, and a cost of 0 or more")
				return nil, cli.ErrUsage
			}
			o.Names = names.all
			return rules.Prometheus(o), nil
		}
	}},
	{"alertmanager", "which alerts follow from which, as a configuration of Alertmanager", fixed(rules.Alertmanager)},
	{"grafana", "a dashboard of Grafana", fixed(rules.Grafana)},
	{"xray-sampling", "sampling rules of X-Ray's centre, as a CloudFormation template", samplingFile},
	{"cloudformation", "alarms, dashboards and queries for AWS, as a CloudFormation template", func(f *flag.FlagSet) func(context.Context, world) ([]byte, error) {
		var o rules.Options
		f.StringVar(&o.Runbooks, "runbooks", "", "where docs/runbooks can be read; the repository if there is none")
		return func(context.Context, world) ([]byte, error) { return rules.CloudFormation(o), nil }
	}},
	{"envoy", "what Envoy needs to ask weir: filter, routes with what they send, cluster", envoyFile(true, sideexport.Envoy)},
	{"envoy-rules", "the limits of a file as rules for Envoy's rate limit service", envoyFile(false, sideexport.EnvoyRules)},
	{"apigateway", "the limits of an upstream as a CloudFormation template for API Gateway", gatewayFile},
}

// recorded are names that are recorded, of which the flag has one each time.
type recorded struct {
	all  []rules.Naming
	said bool
}

func (r *recorded) String() string { return "" }

// Set takes the place of the default, and adds to what was set before.
func (r *recorded) Set(s string) error {
	if !r.said {
		r.all, r.said = nil, true
	}
	if s == "none" {
		return nil
	}
	n, err := rules.ParseNaming(s)
	if err == nil {
		r.all = append(r.all, n)
	}
	return err
}

// fixed is for a file that is always the same.
func fixed(file func() []byte) func(*flag.FlagSet) func(context.Context, world) ([]byte, error) {
	return func(*flag.FlagSet) func(context.Context, world) ([]byte, error) {
		return func(context.Context, world) ([]byte, error) { return file(), nil }
	}
}

// export writes a file to the standard output.
func export(ctx context.Context, w world) error {
	if len(w.args) == 0 {
		exportUsage(w.err)
		return cli.ErrUsage
	}
	name := w.args[0]
	w.args = w.args[1:]
	if slices.Contains([]string{"-h", "-help", "--help"}, name) {
		exportUsage(w.out)
		return nil
	}
	for _, e := range exports {
		if e.name != name {
			continue
		}
		f := w.flags("export "+name, "")
		file := e.declare(f)
		if err := w.parse(f, 0); err != nil {
			return err
		}
		text, err := file(ctx, w)
		if err == nil {
			_, err = w.out.Write(text)
		}
		return err
	}
	fmt.Fprintf(w.err, "weir export: there is no %q\n\n", name)
	exportUsage(w.err)
	return cli.ErrUsage
}

func exportUsage(to io.Writer) {
	fmt.Fprint(to, "usage: weir export FILE [flags]\n\nWrites a file to the standard output.\n\n")
	for _, e := range exports {
		fmt.Fprintf(to, "  %-18s %s\n", e.name, e.about)
	}
}
