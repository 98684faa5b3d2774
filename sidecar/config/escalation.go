package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/observe/cloudwatch"
	"github.com/seed1158cd35/weir/observe/notify"
)

// CloudWatch configures metrics in CloudWatch, besides the admin listener. See docs/how-to/use-cloudwatch.md.
type CloudWatch struct {
	API       bool // PutMetricData; otherwise lines in the embedded metric format on standard output
	Namespace string
	Region    string
	Interval  time.Duration
	Series    int
	Design    weircw.Design
	Static    map[string]string
	Metrics   map[weircw.Metric]weircw.Naming
	Names     map[weircw.Dimension]string
}

var cloudWatchFields = []field[CloudWatch]{
	one("to", choice("lines or api", map[string]bool{"lines": false, "api": true}), func(c *CloudWatch) *bool { return &c.API }, "lines",
		"`lines` writes the embedded metric format to standard output; `api` calls PutMetricData."),
	one("namespace", word, func(c *CloudWatch) *string { return &c.Namespace }, "Weir", "Namespace of the metrics."),
	one("region", word, func(c *CloudWatch) *string { return &c.Region }, "AWS_REGION", "Region of the `api`, and of calls without a region."),
	one("interval", duration, func(c *CloudWatch) *time.Duration { return &c.Interval }, "60s; 10s in a Lambda function", ""),
	one("series", count[int](1), func(c *CloudWatch) *int { return &c.Series }, "1000", ""),
	one("design", choice("default or drs", map[string]weircw.Design{"default": "", "drs": weircw.DRS}), func(c *CloudWatch) *weircw.Design { return &c.Design }, "default",
		"`drs` publishes `RateLimitErrors`, `RetryAttempts`, `RetryExhausted` and `APICallCount` with the dimensions of the DRS design only; see docs/how-to/use-cloudwatch.md."),
	{"static", "dimensions, each with its value", "none", "Dimensions of every metric: `{Service: orders}`.", func(d *decoder, n *node, c *CloudWatch) { c.Static = d.texts(n) }},
	{"metrics", "metrics, each with a new name or off", "unchanged", "Other names for metrics: `{RetryAttempts: Retries, APICallCount: off}`.", readMetricNames},
	{"dimensions", "dimensions, each with a new name", "unchanged", "Other names for dimensions.", readDimensionNames},
}

// texts reads a mapping of names to texts.
func (d *decoder) texts(n *node) map[string]string {
	all := make(map[string]string, len(n.Fields))
	for _, e := range d.named(n) {
		if s, ok := word.read(d, e.Value); ok {
			all[e.Name] = s
		}
	}
	return all
}

func readMetricNames(d *decoder, n *node, c *CloudWatch) {
	c.Metrics = renamed(d, n, "metric", weircw.Metrics[:], func(v *node) (weircw.Naming, bool) {
		if isOff(v) {
			return weircw.Naming{Off: true}, true
		}
		s, ok := word.read(d, v)
		return weircw.Naming{Name: s}, ok
	})
}

func readDimensionNames(d *decoder, n *node, c *CloudWatch) {
	c.Names = renamed(d, n, "dimension", weircw.Dimensions[:], func(v *node) (string, bool) { return word.read(d, v) })
}

// renamed reads new names for known things.
func renamed[K ~string, V any](d *decoder, n *node, what string, known []K, read func(*node) (V, bool)) map[K]V {
	all := make(map[K]V)
	var words []string
	for _, k := range known {
		words = append(words, string(k))
	}
	for _, e := range d.named(n) {
		if !slices.Contains(known, K(e.Name)) {
			d.Unknown(e.Key, what, e.Name, words)
		} else if v, ok := read(e.Value); ok {
			all[K(e.Name)] = v
		}
	}
	return all
}

func readCloudWatch(d *decoder, n *node, f *document) {
	if isOff(n) {
		return
	}
	var c CloudWatch
	if object(d, n, cloudWatchFields, &c); n.Kind != doc.Mapping && n.Kind != doc.Empty {
		return
	}
	check := weircw.Config{Namespace: c.Namespace, Region: c.Region, Interval: c.Interval, Series: c.Series, Design: c.Design, Static: c.Static, Metrics: c.Metrics, Names: c.Names}
	if err := check.Validate(); err != nil {
		d.Bad(n, "", "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	f.CloudWatch = &c
}

// Notify configures the notifications for operators. See docs/how-to/notify.md.
type Notify struct {
	WebhookEnv, WebhookSecretEnv    string // environment variables with the values
	NtfyURL, NtfyTopicEnv, TokenEnv string
	SNS                             string // ARN of a topic

	Kinds    []notify.Kind
	Interval time.Duration
	Runbook  string
}

var notifyFields = []field[Notify]{
	one("webhook_env", word, func(c *Notify) *string { return &c.WebhookEnv }, "none", "Environment variable with the URL of a webhook."),
	one("webhook_secret_env", word, func(c *Notify) *string { return &c.WebhookSecretEnv }, "required with webhook_env", "Environment variable with its signing secret."),
	one("ntfy", word, func(c *Notify) *string { return &c.NtfyURL }, "https://ntfy.sh", "URL of an ntfy server."),
	one("ntfy_topic_env", word, func(c *Notify) *string { return &c.NtfyTopicEnv }, "none", "Environment variable with its topic."),
	one("ntfy_token_env", word, func(c *Notify) *string { return &c.TokenEnv }, "none", "Environment variable with its token."),
	one("sns", word, func(c *Notify) *string { return &c.SNS }, "none", "ARN of an SNS topic."),
	one("kinds", listOf(choice("exhausted, quota, violation, breaker_open, fallback, dead_letter, system or retry", kinds())), func(c *Notify) *[]notify.Kind { return &c.Kinds }, "all but retry", "Kinds of notifications."),
	one("interval", duration, func(c *Notify) *time.Duration { return &c.Interval }, "15m", ""),
	one("runbook", word, func(c *Notify) *string { return &c.Runbook }, "none", ""),
}

func kinds() map[string]notify.Kind {
	all := make(map[string]notify.Kind)
	for _, k := range notify.Kinds {
		all[string(k)] = k
	}
	return all
}

func readNotify(d *decoder, n *node, f *document) {
	if isOff(n) {
		return
	}
	var c Notify
	if object(d, n, notifyFields, &c); n.Kind != doc.Mapping {
		return
	}
	if c.WebhookEnv == "" && c.NtfyTopicEnv == "" && c.SNS == "" {
		d.Bad(n, "write notify: {sns: arn:aws:sns:...}", "needs webhook_env, ntfy_topic_env or sns")
	}
	if (c.WebhookEnv == "") != (c.WebhookSecretEnv == "") {
		d.Bad(n, "", "needs webhook_env and webhook_secret_env together")
	}
	if u, err := url.Parse(c.Runbook); c.Runbook != "" && (err != nil || u.Host == "") {
		d.Bad(n.Get("runbook"), "write it as https://wiki.example.com/weir#{kind}", "is not the URL of a page")
	}
	f.Notify = &c
}
