package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/runs"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// Callers limits how much each caller may use, over all language models and the upstreams with callers: true. See
// docs/how-to/limit-users.md.
type Callers struct {
	Keys   map[string]httpx.Source
	Policy weir.Policy // limits and longest wait
	Claims *Claims     // nil if no key is a claim

	Required map[string]bool // scopes without whose value a call is refused
}

// CallersName is the name of the callers' limits in metrics and in the store.
const CallersName = "callers"

// Claims configures how to verify the token whose claims are keys.
type Claims struct {
	SecretEnv string // environment variable with the secret for HS256, HS384 and HS512
	KeyFile   string // file with a public key in PEM
	Header    string // header with the token; "" means Authorization
	Optional  bool   // callers without a token are anonymous instead of refused
	Issuer    string
	Audience  string
}

var callersFields = []field[Callers]{
	{"keys", "scopes, each with its source", "`{user: \"header:X-User\", tenant: \"header:X-Tenant\", plan: \"header:X-Plan\"}`",
		"Sources of scopes: `header:NAME`, `query:NAME`, `caller` (name of the token or certificate), `remote`, or `claim:NAME` with `jwt.secret_env`. Credentials are hashed.", readCallerKeys},
	{"claims", "fields", "none", "", readClaims},
	{"limits", "limits by name, or off", "global 2000/s burst 4000; user 5/s burst 10, and 5000 a day", "Limits of callers, merged with the defaults by name; `NAME: off` removes one. Scopes: `keys`, `route` (the upstream), `model` and `credential`.", readCallerLimits},
	{"missing", "scopes, each with share or refuse", "share", "Calls without a value of a scope in `keys`: `share` counts them as one value, `refuse` answers 400 and charges nothing.", readMissing},
	one("max_wait", orOff(duration, -1), func(c *Callers) *time.Duration { return &c.Policy.MaxWait }, "off", ""),
}

var claimsFields = []field[Claims]{
	one("secret_env", word, func(c *Claims) *string { return &c.SecretEnv }, "none", ""),
	one("key", word, func(c *Claims) *string { return &c.KeyFile }, "none", ""),
	one("header", word, func(c *Claims) *string { return &c.Header }, "Authorization", ""),
	one("optional", boolean, func(c *Claims) *bool { return &c.Optional }, "false", ""),
	one("issuer", word, func(c *Claims) *string { return &c.Issuer }, "any", ""),
	one("audience", word, func(c *Claims) *string { return &c.Audience }, "any", ""),
}

func readCallerKeys(d *decoder, n *node, c *Callers) {
	c.Keys = make(map[string]httpx.Source, len(n.Fields))
	for _, e := range d.named(n) {
		c.Keys[e.Name], _ = callerSource.read(d, e.Value)
	}
}

var missing = choice("share or refuse", map[string]bool{"share": false, "refuse": true})

func readMissing(d *decoder, n *node, c *Callers) {
	c.Required = make(map[string]bool, len(n.Fields))
	for _, e := range d.named(n) {
		c.Required[e.Name], _ = missing.read(d, e.Value)
	}
}

func readClaims(d *decoder, n *node, c *Callers) {
	var l Claims
	object(d, n, claimsFields, &l)
	if (l.SecretEnv == "") == (l.KeyFile == "") {
		d.Bad(n, "write secret_env: NAME", "needs one of secret_env and key to verify claims")
	}
	l.KeyFile = d.beside(l.KeyFile)
	c.Claims = &l
}

func readCallerLimits(d *decoder, n *node, c *Callers) {
	if isOff(n) {
		return
	}
	for _, e := range d.named(n) {
		if !isOff(e.Value) {
			live, shadow := d.limits(e.Name, e.Value)
			c.Policy.Limits, c.Policy.Shadow = append(c.Policy.Limits, live...), append(c.Policy.Shadow, shadow...)
		}
	}
}

// allowances are the default limits of callers.
const allowances = `
keys: {user: "header:X-User", tenant: "header:X-Tenant", plan: "header:X-Plan"}
limits:
  global: {rate: 2000/s, burst: 4000}
  user: {rate: 5/s, burst: 10, scope: user, plans: {premium: 3x}}
  user-day: {amount: 5000, every: day, scope: user, plans: {premium: 3x}}
`

func readCallers(d *decoder, n *node, f *document) {
	if isOff(n) {
		return
	}
	inner := newDecoder("callers")
	base := inner.Read([]byte(allowances))
	expand(base)
	mark(base, "callers", n, n.Path)
	if isOn(n) {
		n = base
	}
	expand(n)
	c := Callers{Policy: weir.Policy{MaxWait: -1}}
	if !object(d, merge(base, n), callersFields, &c) {
		return
	}
	if at := d.root.Get("jwt"); c.Claims == nil && at.Get("secret_env") != nil {
		var j JWT
		object(&decoder{}, at, jwtFields, &j) // readJWT reports the errors
		c.Claims = &Claims{SecretEnv: j.Secret, Issuer: j.Issuer, Audience: j.Audience}
	}
	c.Policy.Breaker.Off = true
	if _, named := c.Keys[runs.Scope]; named {
		c.Policy.Fair = byRun
	}
	d.checkCallers(n, &c)
	if d.env.off {
		c.Policy.Limits, c.Policy.Shadow = nil, nil
	}
	f.Callers = &c
}

// checkCounted reports upstreams whose requests would be charged to callers without limits, or charged twice.
func (d *decoder) checkCounted(upstreams *node, f *document) {
	for name := range f.Counted {
		at := upstreams.Get(name).Get("callers")
		if f.Callers == nil {
			d.Bad(at, "add callers: true beside upstreams", "the file has no limits for callers")
		}
		if f.speaks(name) {
			d.Bad(at, "write llm: {callers: true}", "for a language model, set callers in llm")
		}
	}
}

// scopesOf returns the scopes that the callers section adds to calls, before the section is read.
func scopesOf(n *node) []string {
	if n == nil || isOff(n) {
		return nil
	}
	all := []string{gateway.User, gateway.Tenant, planScope}
	for _, e := range n.Get("keys").All() {
		all = append(all, e.Name)
	}
	return all
}

// checkCallers reports scopes without a value.
func (d *decoder) checkCallers(n *node, c *Callers) {
	known := append([]string{gateway.Route}, llmScopes...)
	for name, s := range c.Keys {
		known = append(known, name)
		if s.Kind == Claim && c.Claims == nil {
			d.Bad(n.Get("keys").Get(name), "add jwt: {secret_env: NAME}", "no key to verify the token")
		}
	}
	if c.Claims != nil && !c.claimed() {
		d.Bad(n.Get("claims"), "add keys: {user: \"claim:sub\"}", "jwt has no effect, because no key reads a claim")
	}
	for name := range c.Required {
		if _, ok := c.Keys[name]; !ok {
			d.Bad(n.Get("missing").Get(name), "name a scope of keys: "+strings.Join(slices.Sorted(maps.Keys(c.Keys)), ", "), "%s: unknown scope", doc.Quote(name))
		}
	}
	for _, l := range slices.Concat(c.Policy.Limits, c.Policy.Shadow) {
		at := n.Get("limits").Get(l.Name)
		d.knownScopes(at.Get("scope"), l.Scope, known)
		d.knownScope(at.Get("plans"), l.If.Scope, known)
	}
	if err := c.Policy.Validate(); err != nil {
		d.Bad(n, "", "%v", err)
	}
}
