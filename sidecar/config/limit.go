package config

import (
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A class is an operation while the file is read.
type class struct {
	weir.Operation
	retries *node // of the upstream
	own     proxy.Own
}

var operationFields = []field[class]{
	one("methods", listOf(method), func(o *class) *[]string { return &o.Methods }, "any", "HTTP methods, in capitals."),
	one("path", rawPath, func(o *class) *string { return &o.Path }, "any", "Path prefix as sent to the upstream, including the path of `url`. With `aws` or `llm`, an operation without methods and path matches by name; `/` matches all requests."),
	one("safe", safety, func(o *class) *weir.Safety { return &o.Safe }, "by-method",
		"Whether a call that may have been processed may be repeated. `by-method`: GET, HEAD, OPTIONS, TRACE, PUT, DELETE, and calls with an idempotency key in a header."),
	one("priority", priority, func(o *class) *limit.Priority { return &o.Priority }, "normal",
		"Priority of waiting calls that do not set it."),
	{"retry", "as that of the upstream", "the upstream's", "", readOwnRetry},
	{"concurrency", "as that of the upstream", "the upstream's", "", readOwnConcurrency},
	one("deliver", said(delivers), func(o *class) **proxy.Deliver { return &o.own.Deliver }, "as the route", ""),
	one("idempotency", said(keepsAnswers), func(o *class) **bool { return &o.own.Keeps }, "as the route", ""),
	one("idempotency_busy", said(whileBusy), func(o *class) **bool { return &o.own.Waits }, "as the route", ""),
	one("idempotency_failed", said(keepsAnswers), func(o *class) **bool { return &o.own.Failed }, "as the route", ""),
}

var (
	method   = form[string]{"methods", word.read}
	rawPath  = text("a path", operationPath)
	priority = choice("high, normal or low", map[string]limit.Priority{"high": limit.High, "normal": limit.Normal, "low": limit.Low})
	safety   = choice("yes, no or by-method", map[string]weir.Safety{
		"yes": weir.Yes, "true": weir.Yes, "no": weir.No, "false": weir.No, "by-method": weir.ByMethod,
	})
)

// operationPath reads a path prefix. It refuses prefixes that no path can have.
func operationPath(s string) (string, string, string) {
	switch before, _, star := strings.Cut(s, "*"); {
	case star:
		return "", "is not a path prefix: wildcards are not supported", "write " + before + " for all paths with this prefix"
	case strings.ContainsAny(s, "?# \t\r\n"):
		return "", "must be a plain prefix, without query, fragment or space", ""
	}
	return s, "", ""
}

func readOwnRetry(d *decoder, n *node, o *class) {
	c := d.retry(merge(o.retries, n))
	o.Retry = &c
}

func readOperations(d *decoder, n *node, u *site) {
	for _, e := range d.named(n) {
		if isOff(e.Value) {
			continue
		}
		o := class{Operation: weir.Operation{Name: e.Name}, retries: u.retries}
		object(d, e.Value, operationFields, &o)
		u.Policy.Operations = append(u.Policy.Operations, o.Operation)
		if o.own != (proxy.Own{}) {
			put(&u.Own, e.Name, o.own)
			u.owned = append(u.owned, owned{o.own, u.Name, e.Value})
		}
	}
}

// A pace is a limit while the file is read.
type pace struct {
	limit.Limit
	spoken bucket.Rate // the field rate, which may include a burst
	plans  []multiple  // plans with another multiple
	budget bool        // the unit is dollars
	window time.Duration
}

var limitFields = []field[pace]{
	{"rate", rate.words + ", or unknown", "required without `every`",
		"Amount per period: `s`, `min`, `h`, `day` or a duration. `unknown`: calls start at one a second and learn from throttles what the upstream allows.", readRate},
	one("burst", orOff(count[int64](1), 0), func(l *pace) *int64 { return &l.Burst }, "one second's worth",
		"Units available immediately after an idle period."),
	{"amount", "a whole number, or dollars", "required with `every` or `window`",
		"Amount per window, instead of `rate`. With `unit: usd` in dollars: `25`, `0.50`.", readAmount},
	one("every", period, func(l *pace) *bucket.Period { return &l.Every }, "no calendar",
		"Calendar window in `zone`; weeks begin on Monday."),
	one("window", duration, func(l *pace) *time.Duration { return &l.window }, "none",
		"With `unit: usd`, instead of `every`: `amount` applies to any period of this length, such as `24h`."),
	one("zone", zone, func(l *pace) *string { return &l.Zone }, "UTC",
		"Time zone of `every`."),
	one("operations", listOf(operationName), func(l *pace) *[]string { return &l.Operations }, "all", "Operations that the limit counts. `default` means all other operations."),
	one("unit", unit, func(l *pace) *string { return &l.Unit }, limit.Requests,
		"`bytes` counts request bodies with a known length; `tokens` and its parts count language model usage, `usd` its cost (docs/how-to/limit-spending.md). Decision callers report any unit."),
	one("hold", named[limit.Hold]("learned or most"), func(l *pace) *limit.Hold { return &l.Hold }, "learned",
		"With `unit: usd`, the amount that a call holds until its cost is known: the expected cost, or with `most` the largest possible cost."),
	one("scope", combination, func(l *pace) *string { return &l.Scope }, "one for all", "Scope in `keys`; each value has a separate limit. `[run, tool]`: each combination of values."),
	one("shape", named[limit.Shape]("bucket, rolling or fixed"), func(l *pace) *limit.Shape { return &l.Shape }, "bucket, or fixed with `every`",
		"How the upstream counts. `bucket`: burst + rate x t in any interval t. `rolling`: the amount in any window of the period. `fixed`: `amount` per calendar window."),
	one("max_keys", count[int](1), func(l *pace) *int { return &l.MaxKeys }, "100000", ""),
	{"labels", "true or false", "false", "Metrics show each key (docs/reference/metrics.md). Keys of callers need `hash_env`.", readLabels},
	one("local", boolean, func(l *pace) *bool { return &l.Local }, "false", ""),
	one("cold", named[limit.Cold]("refuse, share or full"), func(l *pace) *limit.Cold { return &l.Cold }, "refuse",
		"If the store lost its data: `refuse` counts the limit as used up. `share` divides it by the number of processes. `full` starts full. With both, calls may exceed it by the lost usage."),
	{"plans", "plans, each with a factor", "none", "Factors by the value of the key `plan`: `{premium: 3x}`.", readPlans},
	one("advertised", word, func(l *pace) *string { return &l.Advertised }, "none",
		"The name that the upstream's rate limit headers give this limit: `requests` for `X-RateLimit-Limit-Requests: 500`, `input-tokens` for `Anthropic-Ratelimit-Input-Tokens-Limit`. Once a response contains such headers, their values replace `rate`. In a cascade, a preset's `rate` may be exceeded if the upstream does not send them."),
	{"shadow", "true, fields, or off", "off", "The limit refuses no calls and makes none wait; `weir status` states what it would have done. With `{rate: 50/s}`, it binds, and that rate is tried (docs/how-to/find-your-limits.md).", func(*decoder, *node, *pace) {}},
	{"adaptive", "fields, true, or off", "off", "Adapts the rate to outcomes, never above `rate`. Each process adapts separately, even with a `store`.", readAdaptive},
}

// unknown is the rate of a limit whose rate has to be learned.
const unknown = "unknown"

func readRate(d *decoder, n *node, l *pace) {
	if n.Kind == doc.Scalar && n.Text == unknown {
		l.spoken = limit.Unknown("").Rate
		l.spoken.Burst = 0
		l.Adaptive.On, l.Adaptive.Unknown = true, true
		return
	}
	l.spoken, _ = rate.read(d, n)
}

// A labelled is the position where a limit declares its keys as labels.
type labelled struct {
	at    *node
	limit *pace // set once it is read
}

func readLabels(d *decoder, n *node, l *pace) {
	if l.Labels, _ = boolean.read(d, n); l.Labels {
		d.labelled = append(d.labelled, labelled{n, l})
	}
}

// checkLabels reports keys that cannot be labels, because there are none or because metrics would reveal callers.
func (d *decoder) checkLabels(f *document) {
	shown := veil.New("", f.Harmless)
	for _, l := range d.labelled {
		if l.limit.Scope == "" {
			d.Bad(l.at, "write scope: tenant", "a limit without a scope has no keys")
		}
		for _, scope := range scopes.Names(l.limit.Scope) {
			if f.HashEnv == "" && shown.Label(scope, scope) == "" {
				d.Bad(l.at, "set hash_env", "metrics would show the values of %s", doc.Quote(scope))
			}
		}
	}
}

var unit = choice("requests, bytes, tokens, input_tokens, output_tokens or usd", map[string]string{
	limit.Requests: limit.Requests, "bytes": "bytes", "tokens": "tokens", "input_tokens": "input_tokens", "output_tokens": "output_tokens",
	limit.USD: limit.USD,
})

// combination reads a scope, or a list of scopes whose values are combined.
var combination = form[string]{"a text, or a list of texts", func(d *decoder, n *node) (string, bool) {
	if n.Kind != doc.List {
		scope, ok := word.read(d, n)
		if ok && strings.Contains(scope, ",") {
			d.Bad(n, "write scope: ["+scope+"]", "%s is not one scope", n.Show())
		}
		return scope, ok
	}
	if len(n.Items) < 2 {
		hint := "leave scope out, or name a scope"
		if len(n.Items) == 1 {
			hint = "write scope: " + n.Items[0].Text
		}
		d.Bad(n, hint, "a list of scopes has at least two")
		return "", false
	}
	var names []string
	for _, item := range n.Items {
		name, ok := word.read(d, item)
		switch {
		case !ok:
			return "", false
		case slices.Contains(names, name):
			d.Bad(item, "leave it out", "%s is already in the list", item.Show())
			return "", false
		}
		names = append(names, name)
	}
	return scopes.Join(names...), true
}}

var operationName = form[string]{"operations", word.read}

func readLimits(d *decoder, n *node, u *site) {
	if isOff(n) {
		u.off = true
		return
	}
	for _, e := range d.named(n) {
		if isOff(e.Value) {
			continue
		}
		live, shadow := d.limits(e.Name, e.Value)
		u.Policy.Limits, u.Policy.Shadow = append(u.Policy.Limits, live...), append(u.Policy.Shadow, shadow...)
	}
}

// shadowFields are the fields with which a limit that binds can also be tried.
var shadowFields = []string{"rate", "burst", "amount", "every", "window", "zone", "shape"}

// limits reads a limit that binds, or is tried, or both.
func (d *decoder) limits(name string, n *node) (live, shadow []limit.Limit) {
	before := len(d.Errs)
	at, all := n.Get("shadow"), d.limit(name, n)
	switch {
	case at == nil || isOff(at):
		return all, nil
	case isOn(at):
		return nil, all
	case !d.IsMapping(at):
		return all, nil
	}
	for _, e := range at.Fields {
		if !slices.Contains(shadowFields, e.Name) {
			d.Bad(e.Key, "write a separate limit with shadow: true", "shadow cannot change %s", doc.Quote(e.Name))
		}
	}
	if len(d.Errs) == before { // otherwise the same errors would be reported again
		shadow = d.limit(name, merge(except(n, "shadow"), at))
	}
	return all, shadow
}

// limit reads a limit, and the limits of plans with another multiple.
func (d *decoder) limit(name string, n *node) []limit.Limit {
	l := pace{Limit: limit.Limit{Name: name}, budget: isBudget(n)}
	good := object(d, n, limitFields, &l)
	if l.budget {
		d.budget(n, &l, good)
		return l.all()
	}
	d.noBudget(n)
	if isCalendar(n, &l) {
		d.byCalendar(n, &l, good)
		return l.all()
	}
	if good && n.Get("rate") == nil {
		d.Bad(n, "write rate: 100/s", "has no rate")
	}
	if at := n.Get("zone"); good && at != nil {
		d.Bad(at, "write amount: 25 and every: day instead of rate", "zone needs every")
	}
	l.Amount, l.Per, l.Every, l.Zone = l.spoken.Amount, l.spoken.Per, bucket.NoPeriod, ""
	if l.Amount <= 0 || l.Per <= 0 { // the error is already reported
		l.Amount, l.Per = 1, time.Second
	}
	l.Provisional = l.Advertised != "" && inherited(n.Get("rate"))
	d.burst(n, &l)
	if l.Adaptive.Unknown {
		d.unknown(n, &l)
	}
	return l.all()
}

// unknown reports settings that do not fit an unknown rate. Such a limit starts with a burst of one unit.
func (d *decoder) unknown(n *node, l *pace) {
	l.Burst = max(l.Burst, 1)
	if at := n.Get("unit"); at != nil && l.UnitName() != limit.Requests {
		d.Bad(at, "write rate: 100000/min, and adaptive: true if it may be lower", "an unknown rate counts requests, not %s", l.Unit)
	}
	if at := n.Get("plans"); at != nil && len(l.plans) > 0 {
		d.Bad(at, "leave plans out", "plans cannot multiply an unknown rate")
	}
	if at := n.Get("adaptive"); at != nil && isOff(at) {
		d.Bad(at, "leave it out, or write a rate", "an unknown rate needs adaptive")
	}
}

// burst determines the burst if both rate and burst contain one.
func (d *decoder) burst(n *node, l *pace) {
	rate, burst := n.Get("rate"), n.Get("burst")
	switch {
	case l.spoken.Burst > 0 && burst != nil && inherited(burst) == inherited(rate):
		d.Bad(burst, "leave one of them out", "rate also contains a burst")
	case l.spoken.Burst > 0 && (burst == nil || inherited(burst)):
		l.Burst = l.spoken.Burst
	case inherited(burst) && !inherited(rate):
		l.Burst = burstFor(l.Burst, l.Rate)
	}
}

// burstFor caps a burst that was chosen for another rate at one second's worth of this rate.
func burstFor(burst int64, r bucket.Rate) int64 {
	r.Burst = 0
	return min(burst, r.Full())
}

// inherited reports whether a node comes from a preset.
func inherited(n *node) bool { return n != nil && n.Preset != "" }

var adaptiveFields = []field[adaptive.Config]{
	one("rule", named[adaptive.Rule]("cubic, multiply, add or multiply-each"), func(c *adaptive.Config) *adaptive.Rule { return &c.Rule }, "cubic",
		"How the rate grows after a cut: `cubic` quickly to the old rate and then slowly, `multiply` by a factor, `add` by a step, which equalizes processes, `multiply-each` by a factor for each success."),
	one("start", perSecond, func(c *adaptive.Config) *float64 { return &c.Start }, "`max`", "First rate."),
	one("min", perSecond, func(c *adaptive.Config) *float64 { return &c.Min }, "1% of `max`", "Lowest rate."),
	one("max", perSecond, func(c *adaptive.Config) *float64 { return &c.Max }, "the limit's `rate`", "Highest rate."),
	one("cut", share, func(c *adaptive.Config) *float64 { return &c.Cut }, "50%, for cubic 70%", ""),
	one("grow", number, func(c *adaptive.Config) *float64 { return &c.Grow }, "1.05", ""),
	one("step", share, func(c *adaptive.Config) *float64 { return &c.Step }, "1%", ""),
	one("recovery", duration, func(c *adaptive.Config) *time.Duration { return &c.Recovery }, "20s", ""),
	one("interval", duration, func(c *adaptive.Config) *time.Duration { return &c.Interval }, "1s, for cubic 250ms", ""),
	one("cut_interval", duration, func(c *adaptive.Config) *time.Duration { return &c.CutInterval }, "1s", ""),
	one("used_share", share, func(c *adaptive.Config) *float64 { return &c.UsedShare }, "50%", ""),
}

func readAdaptive(d *decoder, n *node, l *pace) {
	if isOff(n) {
		return
	}
	l.Adaptive.On = true
	if !isOn(n) {
		object(d, n, adaptiveFields, &l.Adaptive)
	}
}

// checkOperations reports limits of operations if the upstream declares none. If it declares some, the policy's
// validation finds the missing ones.
func (d *decoder) checkOperations(n *node, u *Upstream) {
	if len(u.Policy.Operations) > 0 {
		return
	}
	for _, l := range u.Policy.Limits {
		at := n.Get("limits").Get(l.Name).Get("operations")
		if slices.ContainsFunc(l.Operations, func(o string) bool { return o != weir.DefaultOperation }) {
			d.Bad(at, "declare it under operations", "the upstream has no operations")
		}
	}
}
