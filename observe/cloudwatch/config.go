package weircw

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Config configures which metrics are published, their names, and where they go. The zero Config writes lines in the embedded
// metric format to standard output.
type Config struct {
	Namespace string            // "" means "Weir"
	Metrics   map[Metric]Naming // replace a metric's default name and dimensions
	Names     map[Dimension]string
	Design    Design            // "" means the default sets; Sets in Metrics take precedence
	Static    map[string]string // dimensions of every metric, with fixed values: {"Service": "orders"}

	// Region is the value of the dimension for calls without a key "region". "" means the environment variable AWS_REGION, or
	// "none".
	Region string

	// Interval is the period over which events are added up. 0 means 60s, or 10s in a Lambda function. A Lambda environment is
	// frozen between invocations and ends without notice, so a shorter interval loses less. CloudWatch combines both into
	// minutes.
	Interval time.Duration

	// Series is the maximum number of combinations of dimensions, over all metrics; 0 means 1,000. Each costs money. Further
	// calls have "other" as operation, region and so on.
	Series int

	// Backlog is the maximum number of intervals that wait while a writer blocks or the service is unavailable; 0 means 30.
	// Beyond it, the oldest is dropped and counted.
	Backlog int

	// Ignore names upstreams that are not published, such as the upstream of weir's own calls to CloudWatch.
	Ignore []string

	// API publishes the metrics. If it is nil, Lines receives them as lines of JSON, one Write each, and nil means standard
	// output. There is no way to use both, because everything would be counted twice.
	API   API
	Lines io.Writer

	// Weighted writes a latency with more than 100 samples as {"Values": [...], "Counts": [...]}. AWS's own agents do so, but the
	// specification of the format only has numbers and arrays. Without Weighted, 100 numbers represent the samples: percentiles
	// are as accurate, but the sample count is not the number of attempts. It does not apply to API.
	Weighted bool

	Log *slog.Logger // receives failures and recovery of publishing; nil means no log
}

// A Naming is the name of a metric and its dimensions.
type Naming struct {
	Name string // "" means the default
	Sets []Set  // nil means the default; the metric is published once for each set
	Off  bool   // the metric is not published
}

// WithDefaults returns the configuration with all defaults.
func (c Config) WithDefaults() Config {
	c.Namespace = cmp.Or(c.Namespace, "Weir")
	c.Region = cmp.Or(c.Region, os.Getenv("AWS_REGION"), none)
	c.Series, c.Backlog = cmp.Or(c.Series, 1000), cmp.Or(c.Backlog, 30)
	if c.Interval == 0 {
		c.Interval = time.Minute
		if os.Getenv("AWS_LAMBDA_FUNCTION_NAME") != "" {
			c.Interval = 10 * time.Second
		}
	}
	if c.API == nil && c.Lines == nil {
		c.Lines = os.Stdout
	}
	c.Metrics, c.Names = maps.Clone(c.Metrics), maps.Clone(c.Names)
	c.fillNames()
	return c
}

func (c *Config) fillNames() {
	if c.Metrics == nil {
		c.Metrics = make(map[Metric]Naming)
	}
	if c.Names == nil {
		c.Names = make(map[Dimension]string)
	}
	for _, m := range Metrics {
		n := c.Metrics[m]
		n.Name = cmp.Or(n.Name, string(m))
		if n.Sets == nil {
			if n.Sets = c.Design.sets(m); n.Sets == nil {
				n.Sets = m.Sets()
			}
		}
		c.Metrics[m] = n
	}
	for _, d := range Dimensions {
		c.Names[d] = cmp.Or(c.Names[d], string(d))
	}
}

// mostDimensions is the maximum number of dimensions of a metric, in PutMetricData and the embedded metric format (API reference,
// 2026-09).
const mostDimensions = 30

// Validate returns all errors in the configuration.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for m := range c.Metrics {
		if !slices.Contains(Metrics[:], m) {
			bad("metrics: there is no metric %q; want one of %v", m, Metrics)
		}
	}
	for d := range c.Names {
		if d.index() < 0 {
			bad("names: there is no dimension %q; want one of %v", d, Dimensions)
		}
	}
	if c.Design != "" && c.Design != DRS {
		bad("design: there is no design %q; want %s", c.Design, DRS)
	}
	if c.API != nil && c.Lines != nil {
		bad("api and lines: set only one of them, otherwise everything is counted twice")
	}
	c = c.WithDefaults()
	if c.Interval < time.Second {
		bad("interval %v: must be at least 1s", c.Interval)
	}
	if c.Series < 1 || c.Backlog < 1 {
		bad("series %d, backlog %d: must be at least 1", c.Series, c.Backlog)
	}
	c.validateNamespace(bad)
	c.validateNames(bad)
	c.validateSets(bad)
	return errors.Join(errs...)
}

// Valid namespaces and names (API reference of MetricDatum and Dimension, 2026-09): printable ASCII, with a character other than
// space.
var (
	namespaces = regexp.MustCompile(`^[A-Za-z0-9._/#-][A-Za-z0-9._/#: -]{0,254}$`)
	names      = regexp.MustCompile(`^[ -9;-~][ -~]{0,254}$`) // no colon at the beginning
)

func (c *Config) validateNamespace(bad func(string, ...any)) {
	switch {
	case !namespaces.MatchString(c.Namespace):
		bad("namespace %q: want 1 to 255 letters, digits and ._/#:- , no colon first", c.Namespace)
	case strings.HasPrefix(c.Namespace, "AWS/"):
		bad("namespace %q: AWS/ is reserved for AWS", c.Namespace)
	}
}

// validateNames checks all names together: in a line, metrics and dimensions are members of one object.
func (c *Config) validateNames(bad func(string, ...any)) {
	taken := map[string]string{"_aws": "the format itself"}
	take := func(name, who string) {
		if !names.MatchString(name) || strings.TrimSpace(name) == "" {
			bad("%s: name %q: want 1 to 255 printable ASCII characters, no colon first", who, name)
		}
		if by, ok := taken[name]; ok {
			bad("%s: name %q is taken by %s", who, name, by)
		}
		taken[name] = who
	}
	for _, m := range Metrics {
		take(c.Metrics[m].Name, "metric "+string(m))
	}
	for _, d := range Dimensions {
		take(c.Names[d], "dimension "+string(d))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Static)) {
		take(name, "static dimension "+name)
		if value := c.Static[name]; value == "" || value != dimensionValue(value) {
			bad("static dimension %s: value: want 1 to 1024 printable ASCII characters", name)
		}
	}
}

func (c *Config) validateSets(bad func(string, ...any)) {
	for _, m := range Metrics {
		sets := c.Metrics[m].Sets
		for i, set := range sets {
			if slices.ContainsFunc(sets[:i], set.same) {
				bad("metric %s: the set %v occurs twice: everything would be counted twice", m, set)
			}
			if n := len(set) + len(c.Static); n > mostDimensions {
				bad("metric %s: %d dimensions: CloudWatch allows %d", m, n, mostDimensions)
			}
			for i, d := range set {
				if !slices.Contains(m.Has(), d) {
					bad("metric %s: has no dimension %q; want some of %v", m, d, m.Has())
				}
				if slices.Contains(set[:i], d) {
					bad("metric %s: dimension %s occurs twice in a set", m, d)
				}
			}
		}
	}
}

// same reports whether two sets have the same dimensions, in any order.
func (s Set) same(t Set) bool {
	return slices.Equal(slices.Sorted(slices.Values(s)), slices.Sorted(slices.Values(t)))
}

// longestValue is the maximum length of a dimension's value (API reference of Dimension, 2026-09).
const longestValue = 1024

// dimensionValue converts s to a valid value: printable ASCII, not too long, not blank.
func dimensionValue(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), longestValue)])
	if strings.TrimSpace(s) == "" {
		return none
	}
	return s
}
