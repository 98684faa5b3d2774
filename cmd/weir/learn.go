package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/learn"
)

// A lesson specifies the input of weir learn.
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

func newLearn(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "learn [LOG...]",
		Short: "Propose limits from logs or metrics, as a diff of weir.yaml",
		Long: `Propose limits as a diff of weir.yaml. The command does not change the file. LOG is a log of weir with log: attempts, or - for standard
input. To use metrics instead of a log, set --prometheus or --cloudwatch.`,
		Example: `  weir learn weir.log | patch
  weir learn --prometheus http://127.0.0.1:9090 --since 72h`,
		ValidArgsFunction: cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
	}
	var o lesson
	f := c.Flags()
	f.StringVar(&o.config, "config", "weir.yaml", "`FILE` to propose changes to")
	f.BoolVar(&o.json, "json", false, "print JSON")
	f.DurationVar(&o.since, "since", 24*time.Hour, "read the metrics of the last `DURATION`")
	f.DurationVar(&o.step, "step", time.Minute, "read metrics in steps of `DURATION`")
	f.StringVar(&o.upstream, "upstream", "", "`UPSTREAM` that the CloudWatch metrics describe")
	f.StringVar(&o.prometheus, "prometheus", "", "`URL` of the Prometheus server that scrapes weir")
	f.StringVar(&o.job, "job", "weir", "`NAME` of the job with which Prometheus scrapes weir")
	f.StringVar(&o.tokenEnv, "token-env", "", "environment `VARIABLE` that contains the token for Prometheus")
	known := slices.Sorted(maps.Keys(learn.Known))
	f.StringVar(&o.metrics, "cloudwatch", "", "`METRICS` of CloudWatch: "+strings.Join(known, ", ")+", or any name with --namespace, --requests and --throttles")
	completeFixed(c, "cloudwatch", known...)
	f.StringVar(&o.namespace, "namespace", "", "`NAMESPACE` of the metrics")
	f.StringVar(&o.requests, "requests", "", "`METRIC` that counts requests, including throttled ones")
	f.StringVar(&o.throttles, "throttles", "", "`METRIC` that counts throttled requests")
	f.StringVar(&o.region, "region", "", "`REGION` of CloudWatch; default: the environment's")
	f.Func("dimension", "dimension of the metrics, `NAME=VALUE`; repeat it for several", o.dimension)
	c.RunE = func(c *cobra.Command, args []string) error { return o.run(c.Context(), w, args) }
	return c
}

// dimension adds a dimension.
func (o *lesson) dimension(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" || value == "" {
		return errors.New("want NAME=VALUE")
	}
	if o.dimensions == nil {
		o.dimensions = make(map[string]string)
	}
	o.dimensions[name] = value
	return nil
}

// run proposes limits.
func (o *lesson) run(ctx context.Context, w world, logs []string) error {
	sources := 0
	for _, given := range []bool{len(logs) > 0, o.prometheus != "", o.metrics != ""} {
		if given {
			sources++
		}
	}
	if sources != 1 {
		return usagef("want one source: logs (- for standard input), --prometheus or --cloudwatch")
	}
	text, err := os.ReadFile(o.config)
	if err != nil {
		return err
	}
	l := learn.New()
	if err := o.read(ctx, w, l, logs, text); err != nil {
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

// readLogs reads files together, and prints errors in their lines.
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
		{read.Strange, "%d lines were skipped because they are not lines of weir's log\n"},
		{read.Dropped, "weir dropped %d lines when it wrote the log: real rates may be higher\n"},
		{read.Backward, "the clock was set back %d times: the parts before and after were analyzed separately\n"},
	} {
		if of.n > 0 {
			fmt.Fprintf(w.err, of.says, of.n)
		}
	}
	if read.Attempts == 0 && read.Throttles > 0 {
		fmt.Fprintln(w.err, "the log contains throttles but no successful attempts: set log: attempts and try again after a few hours")
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
		return usagef("--cloudwatch %q: unknown metrics; name them with --namespace, --requests and --throttles", o.metrics)
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
		return errors.New("the AWS region is unknown: use --region or set AWS_REGION")
	}
	api := cloudwatch.NewFromConfig(cfg)
	if o.metrics != "weir" {
		if o.upstream == "" {
			return usagef("--upstream is missing: it names the upstream that these metrics describe")
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

// tell prints the reasons as comments before the diff. patch ignores them.
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
		fmt.Fprintln(&b, "# not enough data: no attempts were found")
	}
	if len(diff) == 0 {
		fmt.Fprintf(&b, "# nothing to change in %s\n", o.config)
	}
	b.Write(diff)
	_, err = w.out.Write(b.Bytes())
	return err
}

// input returns the standard input, or an empty reader.
func (w world) input() io.Reader {
	if w.in == nil {
		return strings.NewReader("")
	}
	return w.in
}
