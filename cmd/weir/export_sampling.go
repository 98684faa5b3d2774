package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/seed1158cd35/weir/observe/trace/otlp/xray"
)

// samplingFile returns the maker of a file with sampling rules for X-Ray.
func samplingFile(f *pflag.FlagSet) fileMaker {
	o := xray.Rules{}
	f.StringVar(&o.Service, "service", "weir", "`NAME` of the service that the rules apply to, as in traces.service; * for all")
	f.StringVar(&o.Errors, "errors", "", "add a rule that traces all requests to `PATH`, with priority 50 and a reservoir of 10")
	return func(_ context.Context, w world) ([]byte, error) {
		text, err := o.Template()
		if err != nil {
			return nil, usagef("%v", err)
		}
		if o.Errors != "" {
			fmt.Fprintln(w.err, "warn  X-Ray decides about a trace when a request begins, before an error can occur. So this rule also traces successful requests to "+o.Errors+". weir keeps failed requests without it.")
		}
		return text, nil
	}
}
