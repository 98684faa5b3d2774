package config

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/cascade/similar"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// LLM configures an upstream that is a language model. See docs/how-to/call-language-models.md. 0 means the default
// of package gateway.
type LLM struct {
	Family       llm.Family
	DefaultModel string // for requests without a model
	KeyEnv       string // environment variable with the key that replaces the caller's key
	FirstContent time.Duration
	Idle         time.Duration
	Total        time.Duration
	HoldFor      time.Duration
	Patience     time.Duration
	Callers      bool // calls are also charged to the limits of callers
	Cache        *Cache
	Cascade      *Cascade
}

// Cache configures which answers are cached, and how long.
type Cache struct {
	TTL, Revalidate, IfError time.Duration
	Memory                   int64 // bytes
	AnyTemperature           bool
	Loose                    bool
	Similar                  float64 // required confidence that two questions mean the same; 0 turns this off
}

var llmFields = []field[LLM]{
	one("family", choice("openai, openai-responses, anthropic, gemini, bedrock-converse or bedrock-invoke", families()), func(l *LLM) *llm.Family { return &l.Family }, "from the path",
		"Wire format if the path does not determine it."),
	one("default_model", word, func(l *LLM) *string { return &l.DefaultModel }, "none", ""),
	one("key_env", variable, func(l *LLM) *string { return &l.KeyEnv }, "the caller's", "Environment variable with the API key that replaces the caller's."),
	one("first_content", orOff(duration, -1), func(l *LLM) *time.Duration { return &l.FirstContent }, "60s", "Longest time from a stream's headers to its first content, and longest silence of an unstreamed response."),
	one("idle", orOff(duration, -1), func(l *LLM) *time.Duration { return &l.Idle }, "`timeouts.idle`, 30s", ""),
	one("total", orOff(duration, -1), func(l *LLM) *time.Duration { return &l.Total }, "10m", ""),
	one("hold", duration, func(l *LLM) *time.Duration { return &l.HoldFor }, "a tier's part of `patience`; 15s without a cascade", ""),
	one("patience", orOff(duration, -1), func(l *LLM) *time.Duration { return &l.Patience }, "the cascade's `deadline`, or 20s", ""),
	one("callers", boolean, func(l *LLM) *bool { return &l.Callers }, "true if the file has `callers`", ""),
	{"cache", "fields, true, or off", "off", "Caches answers for identical requests of a tenant.", readCache},
	{"cascade", "fields", "off", "Fallbacks for the model.", readCascade},
}

// variable reads the name of an environment variable. The error does not repeat an invalid value, which may be the
// key itself.
var variable = form[string]{"the name of an environment variable", func(d *decoder, n *node) (string, bool) {
	s, ok := d.Str(n, "the name of an environment variable")
	if ok && !variableName.MatchString(s) {
		d.Bad(n, "write the name of the variable that holds the key: OPENAI_API_KEY", "is not the name of an environment variable")
		ok = false
	}
	return s, ok
}}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func families() map[string]llm.Family {
	all := make(map[string]llm.Family)
	for _, f := range []llm.Family{llm.OpenAI, llm.Responses, llm.Anthropic, llm.Gemini, llm.Converse, llm.Invoke} {
		all[string(f)] = f
	}
	return all
}

var cacheFields = []field[Cache]{
	one("ttl", duration, func(c *Cache) *time.Duration { return &c.TTL }, "1h", "How long an answer is fresh."),
	one("stale_while_revalidate", orOff(duration, -1), func(c *Cache) *time.Duration { return &c.Revalidate }, "10m", "How long after `ttl` it is served while weir fetches a new one at low priority."),
	one("stale_if_error", orOff(duration, -1), func(c *Cache) *time.Duration { return &c.IfError }, "24h", "How long after `ttl` the tier `cached` may serve it if the model fails."),
	one("memory", size(1<<20, 1<<40), func(c *Cache) *int64 { return &c.Memory }, "64MiB", ""),
	one("any_temperature", boolean, func(c *Cache) *bool { return &c.AnyTemperature }, "false", ""),
	one("loose", boolean, func(c *Cache) *bool { return &c.Loose }, "false", "Ignores case and spacing of users' questions, not of instructions. Requests with tools are compared exactly. Do not use it for questions about code."),
	one("similar", sureness, func(c *Cache) *float64 { return &c.Similar }, "off", "Serves the answer to a similar question of the tenant, with at least this confidence (`true`: 95%). Everything else must be equal, without tools or images; see docs/how-to/cache-model-answers.md."),
}

// sureness reads true, off, or the required confidence of an answer.
var sureness = form[float64]{"true, a share (95%), or off", func(d *decoder, n *node) (float64, bool) {
	switch {
	case isOff(n):
		return 0, true
	case isOn(n):
		return similar.Usual, true
	}
	v, ok := share.read(d, n)
	if ok && v < similar.Least {
		d.Bad(n, "write similar: true", "must be at least %v%%: with a lower value, different questions would match", 100*similar.Least)
		return 0, false
	}
	return v, ok
}}

func readCache(d *decoder, n *node, l *LLM) {
	if isOff(n) {
		return
	}
	l.Cache = new(Cache)
	if !isOn(n) {
		object(d, n, cacheFields, l.Cache)
	}
}

func readLLM(d *decoder, n *node, u *site) {
	if isOff(n) {
		return
	}
	l := LLM{Callers: true}
	if object(d, n, llmFields, &l); n.Kind != doc.Mapping && n.Kind != doc.Empty {
		return
	}
	u.llm = &l
	u.Policy.Undeclared = true // operations have the names of the API
}

// settleLLM sets the defaults of a language model.
//
// Waiting calls queue fairly. A call that reserves its turn far ahead would not see how much other calls exceed their
// estimates in the meantime.
//
// An open breaker probes the model every second, regardless of how long the model was down and of whether earlier
// probes were answered. A second of fallback answers costs more than one call per second costs the provider.
func settleLLM(n *node, u *site) {
	if u.llm == nil {
		return
	}
	if n.Get("fair") == nil {
		u.Policy.Fair.By = gateway.Caller
	}
	if u.llm.Patience == 0 && u.llm.Cascade != nil {
		u.llm.Patience = u.llm.Cascade.Deadline
	}
	u.llm.Idle = cmp.Or(u.llm.Idle, u.Policy.Timeouts.Idle)
	b := &u.Policy.Breaker
	if b.Open == 0 && b.FirstOpen == 0 {
		b.Open = modelsOpen
	}
	b.ProbeTimeout = cmp.Or(b.ProbeTimeout, modelsOpen)
}

// modelsOpen is how long the breaker of a language model stays open, and how long one probe blocks the next.
const modelsOpen = time.Second

// llmScopes are the scopes that every call of a language model has.
var llmScopes = []string{gateway.Model, gateway.Credential, gateway.Pool, gateway.Caller}

// llmUnits are the units of their costs.
var llmUnits = []string{"tokens", "input_tokens", "output_tokens"}

// checkLLM reports limits that count tokens or dollars for an upstream that is no language model.
func (d *decoder) checkLLM(n *node, u *site) {
	if u.llm != nil {
		return
	}
	for _, l := range u.Policy.Limits {
		if l.IsBudget() {
			d.Bad(n.Get("limits").Get(l.Name).Get("unit"), "add llm: {}", "only language models have prices")
		}
		if l.Advertised != "" && slices.Contains(llmUnits, l.UnitName()) {
			d.Bad(n.Get("limits").Get(l.Name).Get("advertised"), "add llm: {}", "only language models have tokens")
		}
	}
}

// scaled returns a limit for a plan with a multiple of l.
func scaled(l limit.Limit, plan string, times float64) limit.Limit {
	l.Name += "-" + plan
	l.Amount = max(1, int64(float64(l.Amount)*times))
	if l.Burst > 0 {
		l.Burst = max(1, int64(float64(l.Burst)*times))
	}
	l.If = limit.Match{Scope: planScope, In: []string{plan}}
	return l
}

// planScope is the scope whose value is the plan of a caller.
const planScope = "plan"

// all returns a limit for each plan with another multiple, and one for all other plans.
func (l *pace) all() []limit.Limit {
	var all []limit.Limit
	if l.IsQuota() && len(l.plans) > 0 {
		l.Of = l.Name
	}
	for _, p := range l.plans {
		l.If.Scope, l.If.NotIn = planScope, append(l.If.NotIn, p.name)
		all = append(all, scaled(l.Limit, p.name, p.times))
	}
	return append([]limit.Limit{l.Limit}, all...)
}

// A multiple is the factor of a plan's limits.
type multiple struct {
	name  string
	times float64
}

func readPlans(d *decoder, n *node, l *pace) {
	for _, e := range d.named(n) {
		if times, ok := times.read(d, e.Value); ok {
			l.plans = append(l.plans, multiple{e.Name, times})
		}
	}
}

// times reads a factor, written as 3 or 3x.
var times = text("a factor (3x, 0.5)", func(s string) (float64, string, string) {
	v, wrong, hint := parseNumber(strings.TrimSuffix(s, "x"))
	if wrong == "" && v > 1000 {
		wrong = "must be at most 1000"
	}
	return v, wrong, hint
})
