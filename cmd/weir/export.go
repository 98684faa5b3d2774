package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed1158cd35/weir/observe/rules"
	"github.com/seed1158cd35/weir/sidecar/config"
	sideexport "github.com/seed1158cd35/weir/sidecar/export"
)

// An exportedFile is a file that weir writes for another program. flags adds its flags and returns the function that creates
// the file.
type exportedFile struct {
	name, short, long, example string
	flags                      func(f *pflag.FlagSet) fileMaker
}

// A fileMaker creates a file after the flags are parsed.
type fileMaker func(context.Context, world) ([]byte, error)

var exportedFiles = []exportedFile{
	{
		"prometheus-rules", "Write alerts, as a rule file of Prometheus", "Write alerts and recording rules for weir's metrics, as a rule file of Prometheus.", "--job weir",
		func(f *pflag.FlagSet) fileMaker {
			var o rules.Options
			f.StringVar(&o.Job, "job", "weir", "`NAME` of the job with which Prometheus scrapes weir")
			f.StringVar(&o.Runbooks, "runbooks", "", "`URL` of docs/runbooks; default: the repository")
			names := recorded{all: rules.NamesOfS3()}
			f.Var(&names, "record", "record metrics of an upstream under other names: `UPSTREAM=PREFIX` or UPSTREAM=LATENCY,REQUESTS,ERRORS; none for no upstream; default: s3")
			f.Float64Var(&o.Cost, "cost-per-hour", 0, "alert if language models cost more than `AMOUNT` an hour; 0 for no alert")
			return func(context.Context, world) ([]byte, error) {
				if o.Cost < 0 {
					return nil, usagef("--cost-per-hour %v: want 0 or more", o.Cost)
				}
				if strings.ContainsAny(o.Job, "\"\\\n") {
					return nil, usagef("--job %q: want a name without quotes, backslashes and line breaks", o.Job)
				}
				o.Names = names.all
				return rules.Prometheus(o), nil
			}
		},
	},
	{"alertmanager", "Write inhibition rules for weir's alerts, as an Alertmanager configuration", "Write inhibition rules for weir's alerts, as an Alertmanager configuration.", "", fixed(rules.Alertmanager)},
	{"grafana", "Write a Grafana dashboard", "Write a Grafana dashboard for weir's metrics.", "", fixed(rules.Grafana)},
	{"schema", "Write a JSON Schema of weir.yaml", "Write a JSON Schema of weir.yaml, which editors use to check and complete it.", "", fixed(config.Schema)},
	{"xray-sampling", "Write X-Ray sampling rules, as a CloudFormation template", "Write sampling rules of X-Ray, as a CloudFormation template.", "--service shop", samplingFile},
	{
		"cloudformation", "Write alarms and dashboards for AWS, as a CloudFormation template", "Write alarms, dashboards and queries for CloudWatch, as a CloudFormation template.", "",
		func(f *pflag.FlagSet) fileMaker {
			var o rules.Options
			f.StringVar(&o.Runbooks, "runbooks", "", "`URL` of docs/runbooks; default: the repository")
			return func(context.Context, world) ([]byte, error) { return rules.CloudFormation(o), nil }
		},
	},
	{"envoy", "Write Envoy's configuration for weir's rate limit service", "Write Envoy's configuration for weir's rate limit service: the filter, routes with descriptors, and the cluster.", "--address weir:8083", envoyFile(true, sideexport.Envoy)},
	{"envoy-rules", "Write limits as rules for Envoy's rate limit service", "Write the limits of a configuration file as rules for Envoy's rate limit service.", "--domain edge", envoyFile(false, sideexport.EnvoyRules)},
	{"apigateway", "Write limits as a CloudFormation template for API Gateway", "Write the limits of an upstream as a CloudFormation template for API Gateway.", "--upstream chat --websocket", gatewayFile},
}

// recorded is a flag that can be repeated, once for each name.
type recorded struct {
	all   []rules.Naming
	given bool
}

func (r *recorded) String() string { return "" }

func (r *recorded) Type() string { return "names" }

// Set replaces the default, and adds to earlier values.
func (r *recorded) Set(s string) error {
	if !r.given {
		r.all, r.given = nil, true
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

// fixed returns the maker of a file without flags.
func fixed(file func() []byte) func(*pflag.FlagSet) fileMaker {
	return func(*pflag.FlagSet) fileMaker {
		return func(context.Context, world) ([]byte, error) { return file(), nil }
	}
}

func newExport(w world) *cobra.Command {
	c := asGroup(&cobra.Command{
		Use:     "export FILE",
		Short:   "Write alerts, dashboards and limits as files for other programs",
		Long:    "Write alerts, dashboards and limits as files for other programs, to standard output.",
		Example: "  weir export prometheus-rules > weir.rules.yaml",
	})
	for _, e := range exportedFiles {
		sub := &cobra.Command{Use: e.name, Short: e.short, Long: e.long, Example: strings.TrimRight("  weir export "+e.name+" "+e.example, " ")}
		file := e.flags(sub.Flags())
		sub.RunE = func(c *cobra.Command, _ []string) error {
			text, err := file(c.Context(), w)
			if err == nil {
				_, err = w.out.Write(text)
			}
			return err
		}
		c.AddCommand(sub)
	}
	return c
}
