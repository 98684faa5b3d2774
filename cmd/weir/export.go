package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/observe/rules"
)

// An exported is a file that is made for somebody else's program.
type exported struct {
	name, about string
	flags       func(f *flag.FlagSet, o *rules.Options) // nil for none
	file        func(o rules.Options) []byte
}

var exports = []exported{
	{"prometheus-rules", "alerts, as a rule file of Prometheus", func(f *flag.FlagSet, o *rules.Options) {
		f.StringVar(&o.Job, "job", "weir", "the job that Prometheus scrapes weir under")
		f.StringVar(&o.Runbooks, "runbooks", "", "where docs/runbooks can be read; the repository if there is none")
		f.Float64Var(&o.Cost, "cost-per-hour", 0, "an alert when models cost more in an hour; 0 for none")
	}, rules.Prometheus},
	{"alertmanager", "which alerts follow from which, as a configuration of Alertmanager", nil, func(rules.Options) []byte { return rules.Alertmanager() }},
	{"grafana", "a dashboard of Grafana", nil, func(rules.Options) []byte { return rules.Grafana() }},
}

// export writes a file to the standard output.
func export(w world) error {
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
		var o rules.Options
		f := w.flags("export "+name, "")
		if e.flags != nil {
			e.flags(f, &o)
		}
		if err := w.parse(f, 0); err != nil {
			return err
		}
		if o.Cost < 0 || strings.ContainsAny(o.Job, "\"\\\n") {
			fmt.Fprintf(w.err, "weir export %s: want a job without quotes, and a cost of 0 or more\n", name)
			return cli.ErrUsage
		}
		_, err := w.out.Write(e.file(o))
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
