package config

import (
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/sidecar/decide"
	"github.com/seed1158cd35/weir/sidecar/envoy"
)

// Decide configures the decisions for other programs.
type Decide struct {
	decide.Config
	Envoy  envoy.Config
	Rights map[string]decide.Rights // of the tokens, by name
	Reload time.Duration            // how often the rules for Envoy are checked for changes
}

var decideFields = []field[Decide]{
	one("listen", address, func(c *Decide) *string { return &c.Listen }, "off", "Address of `POST /v1/acquire` and `/v1/report`; HTTPS with `tls`."),
	one("grpc", address, func(c *Decide) *string { return &c.GRPC }, "off", "Address of Envoy's rate limit service."),
	one("rules", word, func(c *Decide) *string { return &c.Envoy.Rules }, "required with `grpc`", "File or directory of rules for Envoy."),
	one("on_store_error", choice("error, allow or deny", map[string]envoy.OnStoreError{"error": envoy.Fail, "allow": envoy.Allow, "deny": envoy.Deny}),
		func(c *Decide) *envoy.OnStoreError { return &c.Envoy.OnStoreError }, "error", "Response to Envoy while the store is unreachable. With `error`, Envoy's `failure_mode_deny` decides."),
	one("store_timeout", duration, func(c *Decide) *time.Duration { return &c.Envoy.Timeout }, "20ms", ""),
	one("rate_limit_headers", choice("off, ratelimit or policy", map[string]envoy.Headers{"off": envoy.NoHeaders, "false": envoy.NoHeaders, "no": envoy.NoHeaders, "ratelimit": envoy.ThreeHeaders, "policy": envoy.PolicyHeaders}),
		func(c *Decide) *envoy.Headers { return &c.Envoy.Headers }, "off", "Headers that Envoy adds to responses: `ratelimit` for three headers, `policy` for the newest draft."),
	one("open", boolean, func(c *Decide) *bool { return &c.Open }, "false", ""),
	{"tokens", "tokens by name", "none", "", readAskers},
	one("client_ca", word, func(c *Decide) *string { return &c.ClientCA }, "none", ""),
	one("hosts", listOf(form[string]{"names", word.read}), func(c *Decide) *[]string { return &c.Hosts }, "none", ""),
	one("max_wait", duration, func(c *Decide) *time.Duration { return &c.MaxWait }, "30s", ""),
	one("max_permits", count[int](1), func(c *Decide) *int { return &c.MaxPermits }, "65536", ""),
}

// A bearer is a token while the file is read: for callers, for programs that request decisions, or for operators.
type bearer struct {
	asker
	admin   bool
	decides bool // the token has rights for decisions
	at      entry
}

var tokenFields = []field[bearer]{
	one("env", variablesOf, func(t *bearer) *[]string { return &t.Envs }, "required", secretMeaning),
	one("upstreams", listOf(form[string]{"upstreams", word.read}), func(t *bearer) *[]string { return &t.Upstreams }, "all", "Upstreams that the token may use."),
	one("admin", boolean, func(t *bearer) *bool { return &t.admin }, "false", "Makes it a token of the admin listener only, sent as `Authorization: Bearer`."),
	one("reports", choice("own or everyone", map[string]bool{"own": false, "everyone": true}), func(t *bearer) *bool { return &t.Everyone }, "none",
		"Makes it a token of `decide` only, sent as `Authorization: Bearer`. With `own`, its reports affect only its calls. With `everyone`, they pause limits, open breakers and lower rates for all callers."),
	{"keys", "scopes, each with its values", "any", "With `reports`: values that the token may use for a scope, such as `{tenant: [acme]}`. A single value is the default.", func(d *decoder, n *node, t *bearer) { readAskerKeys(d, n, &t.asker) }},
}

// readTokens reads the tokens of all listeners.
func readTokens(d *decoder, n *node) (all []bearer) {
	if n == nil {
		return nil
	}
	for _, e := range d.named(n) {
		t := bearer{at: e}
		if !object(d, e.Value, tokenFields, &t) {
			continue
		}
		t.decides = e.Value.Get("reports") != nil || e.Value.Get("keys") != nil
		if t.admin && t.decides {
			d.Bad(e.Value, "write two tokens", "cannot be for both the admin listener and decide")
		}
		all = append(all, t)
	}
	return all
}

// An asker is a token of a program that requests decisions.
type asker struct {
	holder
	decide.Rights
}

var askerFields = []field[asker]{
	one("env", variablesOf, func(t *asker) *[]string { return &t.Envs }, "required", ""),
	one("upstreams", listOf(form[string]{"upstreams", word.read}), func(t *asker) *[]string { return &t.Upstreams }, "all", ""),
	{"keys", "scopes, each with its values", "any", "", readAskerKeys},
	one("reports", choice("own or everyone", map[string]bool{"own": false, "everyone": true}), func(t *asker) *bool { return &t.Everyone }, "own",
		""),
	one("max_permits", count[int](1), func(t *asker) *int { return &t.MaxPermits }, "8192", ""),
	one("max_waiting", count[int](1), func(t *asker) *int { return &t.MaxWaiting }, "1024", ""),
	one("max_keys", count[int](1), func(t *asker) *int { return &t.MaxKeys }, "10000", ""),
	one("max_pauses", count[int](1), func(t *asker) *int { return &t.MaxPauses }, "1000", ""),
}

func readAskerKeys(d *decoder, n *node, t *asker) {
	t.Rights.Keys = make(map[string][]string)
	for _, e := range d.named(n) {
		if values, ok := listOf(form[string]{"values", word.read}).read(d, e.Value); ok {
			if t.Rights.Keys[e.Name] = values; len(values) == 0 {
				d.Bad(e.Value, "leave it out to allow all values", "allows no value")
			}
		}
	}
}

func readAskers(d *decoder, n *node, c *Decide) {
	c.Rights = make(map[string]decide.Rights)
	for _, e := range d.named(n) {
		var t asker
		if object(d, e.Value, askerFields, &t) {
			c.Tokens, c.Rights[e.Name] = append(c.Tokens, d.tokens(e, t.holder)...), t.Rights
		}
	}
}

func readDecide(d *decoder, n *node, f *document) {
	c := Decide{Reload: 5 * time.Second}
	before := len(d.Errs)
	if object(d, n, decideFields, &c); n.Kind != doc.Mapping {
		return
	}
	if (n.Get("grpc") == nil) != (n.Get("rules") == nil) {
		d.Bad(n, "", "set both grpc and rules: the address for Envoy, and the rules")
	}
	if c.Envoy.Rules != "" {
		c.Envoy.Rules = d.beside(c.Envoy.Rules)
	}
	if c.ClientCA != "" {
		c.ClientCA = d.beside(c.ClientCA)
	}
	for _, t := range d.bearers {
		if t.decides && !t.admin {
			c.Tokens = append(c.Tokens, d.tokens(t.at, t.holder)...)
			put(&c.Rights, t.at.Name, t.Rights)
		}
	}
	if len(d.Errs) == before {
		if err := c.Config.Validate(); err != nil {
			d.Bad(n, "", "%v", err)
		}
		if err := c.Envoy.Validate(); err != nil {
			d.Bad(n, "", "%v", err)
		}
	}
	f.Decide = &c
}

// Scopes returns the scopes that requests for decisions may name, besides the scopes of limits.
func (f *File) Scopes() map[string]decide.Scopes {
	all := make(map[string]decide.Scopes, len(f.Upstreams))
	for _, u := range f.Upstreams {
		var s decide.Scopes
		for name, source := range u.Keys {
			if source.Kind == httpx.FromCaller {
				s.Caller = append(s.Caller, name)
			} else {
				s.Declared = append(s.Declared, name)
			}
		}
		if _, ok := f.AWS[u.Name]; ok {
			s.Declared = append(s.Declared, awsScopes...)
		}
		if _, ok := f.LLM[u.Name]; ok {
			s.Declared, s.Model = append(s.Declared, llmScopes...), true
		}
		all[u.Name] = s
	}
	return all
}
