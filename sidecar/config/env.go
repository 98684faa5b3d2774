package config

import (
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet/jobs"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// An envVar is an environment variable that overrides the file.
type envVar struct {
	Name    string
	Words   string // how the value is written
	Meaning string

	set func(d *decoder, n, root *node)
}

// variables lists all variables. An empty variable counts as not set.
var variables = []envVar{
	{"WEIR_LISTEN", address.words, "`listen`", override("listen")},
	{"WEIR_ADMIN", address.words + ", or off", "`admin`", override("admin")},
	{"WEIR_LOG", level.words, "`log`", override("log")},
	{"THROTTLE_ENABLED", toggle.words, "`false` turns all limits off, including `callers`. Retries and breakers continue.",
		func(d *decoder, n, _ *node) {
			on, ok := toggle.read(d, n)
			d.env.off = ok && !on
		}},
	{"THROTTLE_PUT_RATE", knobRate.words, "Rate of every limit named `put`, and the start and maximum of its adaptive rate.", knob("put")},
	{"THROTTLE_GET_RATE", knobRate.words, "The same for `get`.", knob("get")},
	{"THROTTLE_DELETE_RATE", knobRate.words, "The same for `delete`.", knob("delete")},
	{"THROTTLE_CIRCUIT_THRESHOLD", "a whole number", "Failures that open a breaker: `consecutive`, or the number of the breaker's `schedule`.",
		func(d *decoder, n, _ *node) { d.env.threshold, _ = count[int](1).read(d, n) }},
}

// readJobVariable reads a variable of package jobs, with that package's parser.
func readJobVariable(d *decoder, n *node) jobs.Options {
	o, err := jobs.FromEnv(jobs.Options{}, func(name string) (string, bool) { return n.Text, name == n.Path })
	if err != nil {
		d.Bad(n, "", "%s", strings.TrimPrefix(err.Error(), n.Path+": "))
	}
	return o
}

// knobs hold the variables that change policies.
type knobs struct {
	off       bool
	rates     []knobbed
	threshold int // 0 means not set
	jobs      int // threshold of jobs; 0 means not set
}

type knobbed struct {
	limit string
	rate  bucket.Rate
}

// override replaces a field of the file by a variable.
func override(field string) func(d *decoder, n, root *node) {
	return func(_ *decoder, n, root *node) {
		if root.Kind != doc.Mapping {
			return
		}
		for i := range root.Fields {
			if root.Fields[i].Name == field {
				root.Fields[i].Value = n
				return
			}
		}
		root.Fields = append(root.Fields, entry{Name: field, Key: n, Value: n})
	}
}

// toggle reads a boolean in the forms that are usual for variables.
var toggle = text("true or false", func(s string) (bool, string, string) {
	on, ok := parseBool(s)
	if !ok && s != "0" && s != "1" {
		return false, "want true or false", ""
	}
	return on || s == "1", "", ""
})

func knob(name string) func(d *decoder, n, root *node) {
	return func(d *decoder, n, _ *node) {
		if r, ok := knobRate.read(d, n); ok {
			d.env.rates = append(d.env.rates, knobbed{name, r})
		}
	}
}

// knobRate reads a rate, or a whole number per second.
var knobRate = text("a number per second, or a rate (3000, 3000/s, 5/min)", func(s string) (bucket.Rate, string, string) {
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		r, wrong, hint := parseRate(s + "/s")
		return r, wrong, hint
	}
	if !strings.Contains(s, "/") {
		return bucket.Rate{}, "want a whole number per second, or a rate such as 30/min", ""
	}
	return parseRate(s)
})

// environment reads the variables. Package jobs reads its own variables, which are only checked here.
func (d *decoder) environment(root *node, env func(string) (string, bool)) {
	if env == nil {
		return
	}
	for _, v := range variables {
		if s, ok := env(v.Name); ok && s != "" {
			v.set(d, &node{Kind: doc.Scalar, Text: strings.TrimSpace(s), Path: v.Name, File: "environment"}, root)
		}
	}
	for _, name := range []string{jobs.ThresholdEnv, jobs.PollEnv, jobs.TimeoutEnv} {
		if s, ok := env(name); ok {
			o := readJobVariable(d, &node{Kind: doc.Scalar, Text: s, Path: name, File: "environment"})
			d.env.jobs = max(d.env.jobs, o.Threshold)
		}
	}
}

// apply changes a policy according to the variables. Its first limits are live, the others are only tried.
func (k *knobs) apply(p *weir.Policy, live int) {
	for _, r := range k.rates {
		for i := range live {
			if l := &p.Limits[i]; l.Name == r.limit && l.Shape != limit.Calendar {
				setRate(l, r.rate)
			}
		}
	}
	if b := &p.Breaker; k.threshold > 0 && !b.Off {
		*b = b.WithDefaults()
		if b.Consecutive > 0 {
			b.Consecutive = k.threshold
		}
		if b.Failures > 0 || b.Consecutive == 0 {
			b.Failures = k.threshold
		}
	}
}

// setRate changes the rate of a limit, including the bounds and a burst that were chosen for the old rate.
func setRate(l *limit.Limit, r bucket.Rate) {
	if r.Burst == 0 && l.Burst > 0 {
		r.Burst = burstFor(l.Burst, r)
	}
	l.Rate = r
	if a := &l.Adaptive; a.On {
		a.Start, a.Max, a.Unknown = r.PerSecond(), 0, false
		a.Min = min(a.Min, a.Start)
	}
}
