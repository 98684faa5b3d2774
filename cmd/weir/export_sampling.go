package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/observe/trace/otlp/xray"
)

// samplingFile is for the sampling rules of X-Ray.
func samplingFile(f *flag.FlagSet) func(context.Context, world) ([]byte, error) {
	o := xray.Rules{}
	f.StringVar(&o.Service, "service", "weir", "the service that the rules are for, as traces.service says it; * for all")
	f.StringVar(&o.Errors, "errors", "", "a rule with all requests to this `URL` path besides, at priority 50 with a reservoir of 10; it cannot see errors")
	return func(_ context.Context, w world) ([]byte, error) {
		text, err := o.Template()
		if err != nil {
			fmt.Fprintf(w.err, "weir export xray-sampling: %v\n", err)
			return nil, cli.ErrUsage
		}
		if o.Errors != "" {
			fmt.Fprintln(w.err, "weir export xray-sampling: a sampling rule is decided when a request begins, and cannot see errors: this one keeps all requests to "+o.Errors+", those that go well, too. weir keeps what failed without it.")
		}
		return text, nil
	}
}
