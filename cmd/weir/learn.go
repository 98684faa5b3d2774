package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/seed1158cd35/weir/internal/cli"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/learn"
)

// A lesson is what weir learn is asked.
type lesson struct {
	config   string
	json     bool
	since    time.Duration
	step     time.Duration
	upstream string

	prometheus, job, tokenEnv string

	metrics, namespace, requests, throttles, region string
	dimensions                                      map[string]string
}

func (o *lesson) declare(f *flag.FlagSet) {
	f.StringVar(&o.config, "config", "weir.yaml", "the `file` to which changes are proposed")
	f.BoolVar(&o.json, "json", false, "write what was found as JSON")
	f.DurationVar(&o.since, "since", 24*time.Hour, "how far to look back, for metrics")
	f.DurationVar(&o.step, "step", time.Minute, "how long the steps are that metrics are looked at in")
	f.StringVar(&o.upstream, "upstream", "", "the `name` of the upstream that CloudWatch's metrics are about")
	f.StringVar(&o.prometheus, "prometheus", "", "the `URL` of a Prometheus that scrapes weir")
	f.StringVar(&o.job, "job", "weir", "the job that Prometheus scrapes weir under")
	f.StringVar(&o.tokenEnv, "token-env", "", "the environment `variable` with the token to show to Prometheus")
	f.StringVar(&o.metrics, "cloudwatch", "", "metrics of CloudWatch: "+strings.Join(slices.Sorted(maps.Keys(learn.Known)), ", ")+", or other with -namespace, -requests and -throttles")
	f.StringVar(&o.namespace, "namespace", "", "another namespace for them")
	f.StringVar(&o.requests, "requests", "", "the metric of requests, those that were throttled among them")
	f.StringVar(&o.throttles, "throttles", "", "the metric of throttled requests")
	f.StringVar(&o.region, "region", "", "the region of CloudWatch; the SDK's if it is not given")
	f.Func("dimension", "a dimension, `NAME=VALUE`, once for each", func(s string) error {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || value == "" {
			return errors.New("want NAME=VALUE")
		}
		if o.dimensions == nil {
			o.dimensions = make(map[string]string)
		}
		o.dimensions[name] = value
		return nil
	})
}

// runLearn proposes limits, and changes nothing.
func runLearn(ctx context.Context, w world) error {
	f := w.flags("learn", "[LOG...]\n\nProposes limits by what happened: a diff of weir.yaml, for patch. It changes nothing.\nReads logs of weir (log_attempts: true), or the standard input for -.")
	var o lesson
	o.declare(f)
	if err := w.parse(f, 1000); err != nil {
		return err
	}
	sources := 0
	for _, given := range []bool{f.NArg() > 0, o.prometheus != "", o.metrics != ""} {
		if given {
			sources++
		}
	}
	if sources != 1 {
		fmt.Fprintln(w.err, "weir learn: want logs (- for the standard input), -prometheus, or -cloudwatch: one of them")
		return cli.ErrUsage
	}
	text, err := os.ReadFile(o.config)
	if err != nil {
		return err
	}
	l := learn.New()
	if err := o.read(ctx, w, l, f.Args(), text); err != nil {
		return err
	}
	return o.tell(w, l.Findings(), text)
}

func (o *lesson) read(ctx context.Context, w world, l *learn.Learner, files []string, text []byte) error {
	now := time.Now()
	span := learn.Span{From: now.Add(-o.since), To: now, Step: o.step}
	switch {
	case o.prometheus != "":
		token, _ := w.env(o.tokenEnv)
		return l.Prometheus(ctx, learn.Prometheus{URL: o.prometheus, Token: token, Job: o.job}, span)
	case o.metrics != "":
		return o.cloudwatch(ctx, w, l, text, span)
	}
	return readLogs(w, l, files)
}

// readLogs reads files together, and says what was wrong with their lines.
func readLogs(w world, l *learn.Learner, files []string) error {
	var logs []io.Reader
	for _, name := range files {
		if name == "-" {
			logs = append(logs, w.input())
			continue
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		logs = append(logs, file)
	}
	read, err := l.Logs(logs...)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.err, "%d lines, %d attempts\n", read.Lines, read.Attempts)
	for _, of := range []struct {
		n    int64
		says string
	}{
		{read.Strange, "%d lines are none that weir writes, and were left out\n"},
		{read.Dropped, "%d lines were dropped when the log was written: rates may be higher than they look\n"},
		{read.Backward, "%d times the clock was set back: what came before and after was looked at apart\n"},
	} {
		if of.n > 0 {
			fmt.Fprintf(w.err, of.says, of.n)
		}
	}
	if read.Attempts == 0 && read.Throttles > 0 {
		fmt.Fprintln(w.err, "the log has throttles, and no attempts that went well: set log_attempts: true and look again after some hours")
	}
	return nil
}

func (o *lesson) cloudwatch(ctx context.Context, w world, l *learn.Learner, text []byte, span learn.Span) error {
	m, known := learn.Known[o.metrics]
	if !known {
		m = learn.Metrics{Counted: true}
	}
	m.Namespace, m.Requests, m.Throttles = cmp.Or(o.namespace, m.Namespace), cmp.Or(o.requests, m.Requests), cmp.Or(o.throttles, m.Throttles)
	if m.Namespace == "" || m.Requests == "" || m.Throttles == "" {
		fmt.Fprintf(w.err, "weir learn: %q is not known; say -namespace, -requests and -throttles\n", o.metrics)
		return cli.ErrUsage
	}
	file, err := config.Parse(o.config, text, w.env)
	if err != nil {
		return err
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx, func(lo *awsconfig.LoadOptions) error { lo.Region = o.region; return nil })
	if err != nil {
		return err
	}
	if cfg.Region == "" {
		return errors.New("there is no region; say it with -region or in AWS_REGION")
	}
	api := cloudwatch.NewFromConfig(cfg)
	if o.metrics != "weir" {
		if o.upstream == "" {
			fmt.Fprintln(w.err, "weir learn: say with -upstream which upstream of the file these metrics are about")
			return cli.ErrUsage
		}
		return l.CloudWatch(ctx, api, m, o.upstream, o.dimensions, span)
	}
	for i := range file.Upstreams {
		name := file.Upstreams[i].Name
		if o.upstream != "" && o.upstream != name {
			continue
		}
		by := maps.Clone(o.dimensions)
		if by == nil {
			by = make(map[string]string)
		}
		by["Upstream"] = name
		if err := l.CloudWatch(ctx, api, m, name, by, span); err != nil {
			return err
		}
	}
	return nil
}

// tell writes the reasons, as remarks before the diff: patch passes them over.
func (o *lesson) tell(w world, all []learn.Finding, text []byte) error {
	diff, says, err := learn.Change(o.config, text, w.env, all)
	if err != nil {
		return err
	}
	if o.json {
		e := json.NewEncoder(w.out)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			Findings []learn.Finding
			Says     []string
			Diff     string
		}{all, says, string(diff)})
	}
	var b bytes.Buffer
	for i := range all {
		for _, text := range all[i].Says {
			fmt.Fprintf(&b, "# %s: %s\n", plain(all[i].Upstream), plain(text))
		}
	}
	for _, text := range says {
		fmt.Fprintln(&b, "#", plain(text))
	}
	if len(all) == 0 {
		fmt.Fprintln(&b, "# not enough data: nothing was told of any upstream")
	}
	if len(diff) == 0 {
		fmt.Fprintf(&b, "# nothing to change in %s\n", o.config)
	}
	b.Write(diff)
	_, err = w.out.Write(b.Bytes())
	return err
}

// input is the standard input, which has nothing in it if there is none.
func (w world) input() io.Reader {
	if w.in == nil {
		return strings.NewReader("")
	}
	return w.in
}
